#!/usr/bin/env bash
# Forks a worker for each item, in the item's own directory.
set -euo pipefail

list() { git grep -lF old_log -- 'packages/*/run.sh' | xargs -rn 1 dirname; } # your items: directories

desk="$PWD/.work/$RAYMOND_RUN_ID"
mkdir -p "$desk/output" && echo '*' > .work/.gitignore

# Stores the list, so that a repeat after a crash has the same items in the same order.
if [ ! -e "$desk/items" ]; then
  changes=$(git status --porcelain)
  [ -z "$changes" ] || { echo 'commit or stash your own changes first' >&2; exit 1; }
  { list || true; } | sort -u > "$desk/items.new" && mv "$desk/items.new" "$desk/items"
fi
[ -s "$desk/items" ] || { echo '<result>nothing to migrate</result>'; exit; }

while read -r item; do
  raymond emit fork MIGRATE --cd "$item" --attribute item="$item" --attribute desk="$desk"
done < "$desk/items"
echo '<goto wait="all">REPORT</goto>'
