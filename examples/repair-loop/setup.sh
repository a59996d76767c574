#!/usr/bin/env bash
# Creates try/: a small git repository with two bugs.
set -euo pipefail
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE # leave an enclosing repository alone
cd "$(dirname "$0")"
[ ! -e try ] || { echo 'try/ is there already: remove it first' >&2; exit 1; }
mkdir try
cd try
git init --quiet --initial-branch main
git config user.name You
git config user.email you@example.org
git config commit.gpgsign false
echo .raymond > .gitignore

cat > roman.sh <<'CODE'
n=$1
for pair in 10:X 5:V 1:I; do
  while ((n >= ${pair%:*})); do printf '%s' "${pair#*:}"; ((n -= ${pair%:*})); done
done
echo
CODE
cat > test.sh <<'CODE'
code=0
for pair in 1:I 4:IV 9:IX 40:XL 58:LVIII; do
  found=$(bash roman.sh "${pair%:*}")
  [ "$found" = "${pair#*:}" ] || { echo "${pair%:*} is ${pair#*:}, not $found"; code=1; }
done
exit $code
CODE
cat > check.sh <<'CODE'
# Prints the test result as JSON: whether the tests pass, and the end of their output.
if output=$(bash test.sh 2>&1); then ok=true; else ok=false; fi
jq -n --argjson ok "$ok" --arg output "$(tail -c 4000 <<< "$output")" '{$ok, $output}'
CODE
git add --all
git commit --quiet --message 'start'
