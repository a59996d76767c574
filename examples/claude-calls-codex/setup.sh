#!/usr/bin/env bash
# Makes try/: a git repository with nothing but a README.
set -euo pipefail
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE # a repository around this one is left alone
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
