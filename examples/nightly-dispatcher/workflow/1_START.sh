#!/usr/bin/env bash
set -euo pipefail

mkdir -p ".work/$RAYMOND_RUN_ID/taken" && echo '*' > .work/.gitignore
echo '<goto>POLL</goto>'
