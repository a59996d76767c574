#!/usr/bin/env bash
# Creates try/: a git repository, a tracker with two issues, and the tracker's `gh`.
set -euo pipefail
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE # leave an enclosing repository alone
cd "$(dirname "$0")"
[ ! -e try ] || { echo 'try/ is there already: remove it first' >&2; exit 1; }
mkdir -p try/bin try/tracker/issues try/project
install -m 755 gh.sh try/bin/gh
printf 'Say goodbye\n\n`./say.sh bye` should print `Goodbye!`.\n' > try/tracker/issues/12
printf 'Say good night\n\n`./say.sh night` should print `Good night!`.\n' > try/tracker/issues/15
cd try/project
git init --quiet --initial-branch main
git config user.name You
git config user.email you@example.org
git config commit.gpgsign false

echo 'echo "Hello!"' > say.sh
cat > test.sh <<'CODE'
#!/usr/bin/env bash
# Every file in tests/ is a test.
code=0
for test in tests/*.sh; do bash "$test" || { echo "not ok $test"; code=1; }; done
exit $code
CODE
chmod +x test.sh
mkdir tests
echo '[ "$(bash say.sh)" = "Hello!" ]' > tests/hello.sh
git add --all
git commit --quiet --message 'start'
