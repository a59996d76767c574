#!/usr/bin/env bash
# Runs the tests. Commits the changes if they fix tests and break none.
set -euo pipefail

run_tests() { ./test.sh; }                          # your test command
failing() { sed -n 's/^not ok //p' "$1"; }          # how it reports a failing test

work=".work/$RAYMOND_RUN_ID"

code=0
run_tests > "$work/output" 2>&1 || code=$?
failing "$work/output" | sort > "$work/now"
[ "$code" -eq 0 ] || [ -s "$work/now" ] || echo 'the build' > "$work/now"
[ "$code" -ne 0 ] || : > "$work/now"

# Compares with the failures at the last commit. If the script runs again after a crash, the commit
# may exist already; then git finds nothing to commit.
[ -e "$work/before" ] || cp "$work/now" "$work/before"
green=$(comm -23 "$work/before" "$work/now" | paste -sd, | sed 's/,/, /g')
red=$(comm -13 "$work/before" "$work/now")
if [ -n "$green" ] && [ -z "$red" ]; then
  git add --all
  git diff --cached --quiet || git commit --quiet --message "fix: $green"
  cp "$work/now" "$work/before"
fi

if [ "$code" -eq 0 ]; then
  commits=$(git rev-list --count "$(cat "$work/base")..HEAD")
  echo "<result>green, commits: $commits</result>"
  exit
fi

# Counts how often in a row the same tests failed. Each line starts with the key of its visit, so a
# repeated visit counts once.
grep -qsF "$RAYMOND_VISIT " "$work/seen" || echo "$RAYMOND_VISIT $(cksum < "$work/now")" >> "$work/seen"
times=$(awk '{ times = $2 == last ? times + 1 : 1; last = $2 } END { print times }' "$work/seen")
report() { echo "failing: $(paste -sd' ' "$work/now")"; echo; tail -n 40 "$work/output"; }

if [ $((times % 3)) -eq 0 ]; then
  # A dead end: stash the edits, and start a fresh conversation from the last commit.
  git stash push --quiet --include-untracked --message "dead end of $RAYMOND_RUN_ID"
  again='The same tests failed three times in a row, and those edits are gone. Look for another cause.'
  { report; printf '\n%s' "$again"; } | raymond emit reset FIX --input-file -
else
  report | raymond emit goto FIX --input-file -
fi
