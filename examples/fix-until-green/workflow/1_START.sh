#!/usr/bin/env bash
# Every commit of the run contains all changes, so the run must start from a clean tree.
set -euo pipefail

work=".work/$RAYMOND_RUN_ID"
mkdir -p "$work" && echo '*' > .work/.gitignore

if [ ! -e "$work/base" ]; then
  changes=$(git status --porcelain)
  [ -z "$changes" ] || { echo 'commit or stash your own changes first' >&2; exit 1; }
  git rev-parse HEAD > "$work/base.new" && mv "$work/base.new" "$work/base"
fi
echo '<goto>TEST</goto>'
