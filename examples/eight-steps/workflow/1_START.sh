#!/usr/bin/env bash
# Step 1: a function with an empty conversation picks the issue.
set -euo pipefail

changes=$(git status --porcelain)
[ -z "$changes" ] || { echo 'commit or stash your own changes first' >&2; exit 1; }
list=$(for file in issues/*.md; do [ ! -e "$file" ] || echo "$file: $(head -n 1 "$file")"; done)
[ -n "$list" ] || { echo '<result>nothing to do</result>'; exit; }
list=$(sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/"/\&quot;/g' <<< "$list")
echo "<function return=\"BEGIN\" input=\"$list\">PICK</function>"
