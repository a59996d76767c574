#!/usr/bin/env bash
# Creates try/: a git repository with a list of two things to do.
set -euo pipefail
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE # leave an enclosing repository alone
cd "$(dirname "$0")"
[ ! -e try ] || { echo 'try/ is there already: remove it first' >&2; exit 1; }
mkdir -p try/tests
cd try
git init --quiet --initial-branch main
git config user.name You
git config user.email you@example.org
git config commit.gpgsign false

printf -- '- [ ] `./say.sh bye` prints `Goodbye!`\n- [ ] `./say.sh night` prints `Good night!`\n' > TODO.md
echo 'echo "Hello!"' > say.sh
cat > test.sh <<'CODE'
#!/usr/bin/env bash
# Every file in tests/ is a test.
code=0
for test in tests/*.sh; do bash "$test" || { echo "not ok $test"; code=1; }; done
exit $code
CODE
chmod +x test.sh
echo '[ "$(bash say.sh)" = "Hello!" ]' > tests/hello.sh
git add --all
git commit --quiet --message 'start'
