#!/usr/bin/env bash
# Runs in the item's directory. Commits an item that passes, and nothing else.
set -euo pipefail

check() { ./check.sh; }                             # your check of one item

desk=$RAYMOND_ATTR_DESK item=$RAYMOND_ATTR_ITEM
output="$desk/output/$RAYMOND_AGENT_ID"
if ! check > "$output" 2>&1; then
  { echo 'The check failed:'; tail -n 30 "$output"; } | raymond emit goto MIGRATE --input-file -
  exit
fi

# The workers share one repository, so only one of them may commit at a time.
exec 9> "$desk/lock" && flock 9
git add --all .
git diff --cached --quiet -- . || git commit --quiet --message "migrate $item" -- .
echo '<result>migrated</result>'
