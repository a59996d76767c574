#!/usr/bin/env bash
# Step 8: commits the change and closes the issue. If the script runs again, it changes nothing.
set -euo pipefail

message=${RAYMOND_RESULT_FILE:-/dev/null}           # an agent may forget its `input`
issue=$(grep -oiP 'closes #\K[0-9]+' "$message" | head -n 1 || true)
if [ ! -e "issues/$issue.md" ] && [ ! -e "issues/closed/$issue.md" ]; then
  echo '<goto input="yes, but the commit message must end with (closes #NUMBER): the issue that you work on">COMMIT</goto>'
  exit
fi
# The agent may have edited files in REVIEW or COMMIT, so the tests run again.
if ! output=$(./test.sh 2>&1); then
  { echo 'no: the tests fail:'; tail -n 40 <<< "$output"; } | raymond emit goto COMMIT --input-file -
  exit
fi

if [ -e "issues/$issue.md" ]; then
  mkdir -p issues/closed
  mv "issues/$issue.md" issues/closed/
fi
git add --all
git diff --cached --quiet || git commit --quiet --file "$message"
echo "<result>closed $issue: $(git log -1 --format=%s)</result>"
