#!/usr/bin/env bash
# Step 4: the plan is in a file, so a reset can discard the conversation about it.
set -euo pipefail

plan=$(tr -d '[:space:]' < "$RAYMOND_RESULT_FILE")
if [ -f "$plan" ] && [ -s "$plan" ]; then
  raymond emit reset BUILD --input "$plan"
else
  echo '<result status="failed">not done: there is no plan</result>'
fi
