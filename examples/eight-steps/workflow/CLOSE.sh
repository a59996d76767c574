#!/usr/bin/env bash
# Step 8: commits and closes. Run again, it finds nothing left to do.
set -euo pipefail

issue=$(grep -oP 'closes #\K[0-9]+' "$RAYMOND_RESULT_FILE" | head -n 1) ||
  { echo 'the commit message does not say which issue it closes' >&2; exit 1; }
if [ -e "issues/$issue.md" ]; then
  mkdir -p issues/closed && mv "issues/$issue.md" issues/closed/
fi
git add --all
git diff --cached --quiet || git commit --quiet --file "$RAYMOND_RESULT_FILE"
echo "<result>closed $issue: $(git log -1 --format=%s)</result>"
