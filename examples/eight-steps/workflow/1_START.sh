#!/usr/bin/env bash
# Step 1: a function with an empty conversation picks the issue.
set -euo pipefail

changes=$(git status --porcelain)
[ -z "$changes" ] || { echo 'commit or stash your own changes first' >&2; exit 1; }
list=$(for file in issues/*.md; do [ ! -e "$file" ] || echo "$file: $(head -n 1 "$file")"; done)
[ -n "$list" ] || { echo '<result>nothing to do</result>'; exit; }
raymond emit function PICK --return BEGIN --input "$list"
