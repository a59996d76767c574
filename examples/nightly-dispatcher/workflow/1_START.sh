#!/usr/bin/env bash
set -euo pipefail

mkdir -p ".work/$RAYMOND_RUN_ID"/{taken,issues} && echo '*' > .work/.gitignore
echo '<goto>POLL</goto>'
