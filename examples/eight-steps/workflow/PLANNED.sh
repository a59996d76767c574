#!/usr/bin/env bash
# Step 4: the plan is in a file, so the conversation about it can go.
set -euo pipefail

plan=$(tr -d '[:space:]' < "$RAYMOND_RESULT_FILE")
[ -s "$plan" ] || { echo "there is no plan in '$plan'" >&2; exit 1; }
echo "<reset input=\"$plan\">BUILD</reset>"
