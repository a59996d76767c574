#!/usr/bin/env bash
# Undoes edits to the tests, and reports them to the agent.
set -euo pipefail

protected=(test.sh tests)                           # your tests

work=".work/$RAYMOND_RUN_ID"
base=$(cat "$work/base")
# The file is named after this visit, so an interrupted guard still knows what it undid.
touched="$work/touched.$RAYMOND_VISIT"
{
  git diff --name-only "$base" -- "${protected[@]}"
  git ls-files --others --exclude-standard -- "${protected[@]}"
} >> "$touched"

if [ -s "$touched" ]; then
  git restore --source "$base" --staged --worktree -- "${protected[@]}"
  git clean --quiet --force -d -- "${protected[@]}"
  names=$(sort -u "$touched" | paste -sd' ')
  text="Your edits to $names were undone. The tests are right: fix the code."
  raymond emit goto FIX --input "$text"
else
  echo '<goto>TEST</goto>'
fi
