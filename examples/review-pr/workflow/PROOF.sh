#!/usr/bin/env bash
# Believes the test, not the agent: only exit code 1 proves a bug. Then the tree is as it was.
set -euo pipefail

test=tests/proof.sh                                 # as PROVE.md says
run_test() { timeout 120 bash "$test"; }

# It runs in the worktree, like PROVE: nowhere else is anything put back.
desk=..
[ "$(git rev-parse --show-toplevel)" = "$(pwd -P)" ] || { echo 'the worktree is gone' >&2; exit 1; }
finding=$(cat "$desk/current")
kept="$desk/proofs/$finding.test"

# Kept first: cut off below, the next try finds it here.
[ ! -e "$test" ] || cp "$test" "$kept"
verdict='not proven'
if [ -e "$kept" ]; then
  mkdir -p "$(dirname "$test")"
  cp "$kept" "$test"
  code=0
  run_test > "$desk/proofs/$finding.output" 2>&1 || code=$?
  [ "$code" -ne 1 ] || verdict=proven
fi
git restore --staged --worktree .
git clean --quiet --force -d
echo "$verdict" > "$desk/proofs/$finding"
echo '<reset cd="../../..">NEXT</reset>'
