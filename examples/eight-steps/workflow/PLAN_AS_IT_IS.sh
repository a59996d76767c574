#!/usr/bin/env bash
# The target of `then`. A call led to PLAN, so the state that replaces PLAN must return, too.
set -euo pipefail

plan=$(git ls-files --others --modified -- plans | head -n 1)
echo "<result>$plan</result>"
