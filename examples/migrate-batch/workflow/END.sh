#!/usr/bin/env bash
# Every worker writes its outcome. A worker that then sees all outcomes writes the report.
set -euo pipefail

desk=$RAYMOND_ATTR_DESK
printf '%s: %s\n' "$RAYMOND_ATTR_ITEM" "$RAYMOND_RESULT" > "$desk/outcome/$RAYMOND_AGENT_ID"

exec 9> "$desk/lock" && flock 9
sort "$desk"/outcome/* > "$desk/all"
items=$(wc -l < "$desk/items")
if [ "$(wc -l < "$desk/all")" -eq "$items" ]; then
  migrated=$(grep -c ': migrated$' "$desk/all" || true)
  { echo "$migrated of $items migrated" && cat "$desk/all"; } > "$desk/report"
fi
echo "<result>$(cat "$desk/outcome/$RAYMOND_AGENT_ID")</result>"
