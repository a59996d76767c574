#!/usr/bin/env bash
# Creates try/: a git repository with a pull request (the branch pr-7), and a `gh` for it.
set -euo pipefail
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE # leave an enclosing repository alone
cd "$(dirname "$0")"
[ ! -e try ] || { echo 'try/ is there already: remove it first' >&2; exit 1; }
mkdir -p try/bin try/comments try/project
install -m 755 gh.sh try/bin/gh
cd try/project
git init --quiet --initial-branch main
git config user.name You
git config user.email you@example.org
git config commit.gpgsign false
mkdir tests

cat > cart.sh <<'CODE'
total() { local sum=0 price; for price in "$@"; do sum=$((sum + price)); done; echo "$sum"; }
CODE
echo '. ./cart.sh; [ "$(total 2 3)" = 5 ]' > tests/total.sh
git add --all
git commit --quiet --message 'start'

git switch --quiet --create pr-7
cat >> cart.sh <<'CODE'
discount() { # cents, percent
  echo "$(($1 / 100 * (100 - $2)))"
}
CODE
git commit --quiet --all --message 'discounts'
git switch --quiet main
