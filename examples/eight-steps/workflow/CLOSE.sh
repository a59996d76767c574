#!/usr/bin/env bash
# Step 8: commits and closes. Run again, it finds nothing left to do.
set -euo pipefail

message=${RAYMOND_RESULT_FILE:-/dev/null}           # an agent may forget its `input`
issue=$(grep -oiP 'closes #\K[0-9]+' "$message" | head -n 1 || true)
if [ ! -e "issues/$issue.md" ] && [ ! -e "issues/closed/$issue.md" ]; then
  echo '<goto input="yes, but the commit message must end with (closes #NUMBER): the issue that you work on">COMMIT</goto>'
  exit
fi
# REVIEW and COMMIT may have mended something since TEST.
if ! output=$(./test.sh 2>&1); then
  output=$(tail -n 40 <<< "$output" | sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/"/\&quot;/g')
  echo "<goto input=\"no: the tests fail:
$output\">COMMIT</goto>"
  exit
fi

if [ -e "issues/$issue.md" ]; then
  mkdir -p issues/closed
  mv "issues/$issue.md" issues/closed/
fi
git add --all
git diff --cached --quiet || git commit --quiet --file "$message"
echo "<result>closed $issue: $(git log -1 --format=%s)</result>"
