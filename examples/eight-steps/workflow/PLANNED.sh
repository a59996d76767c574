#!/usr/bin/env bash
# Step 4: the plan is in a file, so a reset can discard the conversation about it.
set -euo pipefail

plan=$(tr -d '[:space:]' < "$RAYMOND_RESULT_FILE")
if [ -f "$plan" ] && [ -s "$plan" ]; then
  plan=$(sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/"/\&quot;/g' <<< "$plan")
  echo "<reset input=\"$plan\">BUILD</reset>"
else
  echo '<result>not done: there is no plan</result>'
fi
