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
mkdir tests

cat > text.sh <<'CODE'
shout() { printf '%s\n' "${1^^}"; }
slug() { printf '%s\n' "${1// /-}"; }
shorten() { printf '%s\n' "${1:0:$2}"; }
CODE
cat > test.sh <<'CODE'
#!/usr/bin/env bash
# Every test is a function call and its expected output.
code=0
for test in tests/*; do
  IFS='|' read -r call expected < "$test"
  found=$(. ./text.sh; eval "$call")
  if [ "$found" = "$expected" ]; then echo "ok ${test#tests/}"
  else echo "not ok ${test#tests/}"; echo "  $call prints '$found', not '$expected'"; code=1; fi
done
exit $code
CODE
chmod +x test.sh
echo "shout abc|ABC" > tests/shout
echo "slug 'Hello World'|hello-world" > tests/slug
echo "shorten 'a long text' 6|a lon…" > tests/shorten
git add --all
git commit --quiet --message 'start'
