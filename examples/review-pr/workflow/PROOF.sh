#!/usr/bin/env bash
# Trusts the test, not the agent: only exit code 1 proves a bug. Then restores the worktree.
set -euo pipefail

test=tests/proof.sh                                 # the same file as in PROVE.md
run_test() { timeout 120 bash "$test"; }

# Like PROVE, this script runs in the worktree. It must not restore files anywhere else.
desk=..
[ "$(git rev-parse --show-toplevel)" = "$(pwd -P)" ] || { echo 'the worktree is gone' >&2; exit 1; }
finding=$(cat "$desk/current")
kept="$desk/proofs/$finding.test"

# Copies the test first, so that a repeat after an interruption still finds it.
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
