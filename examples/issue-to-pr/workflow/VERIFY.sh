#!/usr/bin/env bash
# Trusts the tests, not the agent. If they pass, commits the change and asks for a review.
set -euo pipefail

verify() { ./test.sh; }                             # your test command

work=".work/$RAYMOND_RUN_ID"
if ! verify > "$work/output" 2>&1; then
  { echo 'The tests fail:'; tail -n 40 "$work/output"; } | raymond emit goto IMPLEMENT --input-file -
  exit
fi

git add --all
git diff --cached --quiet || git commit --quiet --message "$(head -n 1 "$work/issue.md")"
git diff "$(cat "$work/base")...HEAD" > "$work/diff"
echo '<function return="DECIDE">REVIEW</function>'
