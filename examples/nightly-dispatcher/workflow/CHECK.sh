#!/usr/bin/env bash
# Trusts the tests, not the agent.
set -euo pipefail

check() { ./test.sh; }                              # your test command

if ! check > .work/output 2>&1; then
  tail=$(tail -n 40 .work/output | sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/"/\&quot;/g')
  echo "<goto input=\"The tests fail:
$tail\">WORK</goto>"
  exit
fi
git add --all
git diff --cached --quiet || git commit --quiet --message "$(head -n 1 .work/issue.md) (#$RAYMOND_ATTR_ISSUE)"
echo "<result>night-$RAYMOND_ATTR_ISSUE is ready</result>"
