#!/usr/bin/env bash
# Creates try/: a git repository with an origin, a tracker with one issue, and the tracker's `gh`.
set -euo pipefail
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE # leave an enclosing repository alone
cd "$(dirname "$0")"
[ ! -e try ] || { echo 'try/ is there already: remove it first' >&2; exit 1; }
mkdir -p try/bin try/tracker/{issues,comments,pulls}
install -m 755 gh.sh try/bin/gh
cat > try/tracker/issues/12 <<'ISSUE'
Greet people by name

`./greet.sh Ada` should print `Hello, Ada!`. Without a name it stays as it is.
ISSUE
git init --quiet --bare --initial-branch main try/origin.git
git init --quiet --initial-branch main try/project
cd try/project
git remote add origin ../origin.git
git config user.name You
git config user.email you@example.org
git config commit.gpgsign false
mkdir tests

echo 'echo "Hello!"' > greet.sh
cat > test.sh <<'CODE'
#!/usr/bin/env bash
# Every file in tests/ is a test.
code=0
for test in tests/*.sh; do bash "$test" || { echo "not ok $test"; code=1; }; done
exit $code
CODE
chmod +x test.sh
echo '[ "$(bash greet.sh)" = "Hello!" ]' > tests/nobody.sh
git add --all
git commit --quiet --message 'start'
git push --quiet origin main
