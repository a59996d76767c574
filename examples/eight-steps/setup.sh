#!/usr/bin/env bash
# Creates try/: a git repository with two issues.
set -euo pipefail
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE # leave an enclosing repository alone
cd "$(dirname "$0")"
[ ! -e try ] || { echo 'try/ is there already: remove it first' >&2; exit 1; }
mkdir -p try/issues try/tests
cd try
git init --quiet --initial-branch main
git config user.name You
git config user.email you@example.org
git config commit.gpgsign false

printf 'Count words, too\n\n`./stats.sh FILE` prints lines. It should print words as well.\n' > issues/195.md
printf 'Rename a variable\n\nIts name is misleading.\n' > issues/196.md
printf 'echo "lines: $(wc -l < "$1")"\n' > stats.sh
cat > test.sh <<'CODE'
#!/usr/bin/env bash
# Every file in tests/ is a test.
code=0
for test in tests/*.sh; do bash "$test" || { echo "not ok $test"; code=1; }; done
exit $code
CODE
chmod +x test.sh
echo '[ "$(bash stats.sh <(echo a b) | head -n 1)" = "lines: 1" ]' > tests/lines.sh
git add --all
git commit --quiet --message 'start'
