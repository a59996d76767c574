#!/usr/bin/env bash
# Where `then` leads. PLAN was called, so whoever stands in for it must return, too.
set -euo pipefail

plan=$(git ls-files --others --modified -- plans | head -n 1)
echo "<result>$plan</result>"
