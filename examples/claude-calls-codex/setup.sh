#!/usr/bin/env bash
# Creates try/: a git repository that contains only a README.
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
echo 'Small tools around dates.' > README
git add --all
git commit --quiet --message 'start'
