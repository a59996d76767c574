#!/usr/bin/env bash
# Step 1: somebody who knows nothing else picks the issue.
set -euo pipefail

changes=$(git status --porcelain)
[ -z "$changes" ] || { echo 'commit or stash your own changes first' >&2; exit 1; }
list=$(head -n 1 issues/*.md | sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/"/\&quot;/g')
echo "<function return=\"BEGIN\" input=\"$list\">PICK</function>"
