#!/usr/bin/env bash
# Checks a pull request out and starts three reviewers. `--input 7` names the pull request.
set -euo pipefail

check_out() { gh pr checkout "$1" > /dev/null; }
diff_of() { gh pr diff "$1"; }

pr=${RAYMOND_INPUT:-}
[[ "$pr" =~ ^[0-9]+$ ]] || { echo 'which pull request? start with --input NUMBER' >&2; exit 1; }
changes=$(git status --porcelain)
[ -z "$changes" ] || { echo 'commit or stash your own changes first' >&2; exit 1; }

desk=".work/$RAYMOND_RUN_ID"
mkdir -p "$desk"/{findings,dropped,proofs,reviewed} && echo '*' > .work/.gitignore
echo "$pr" > "$desk/pr"
check_out "$pr"
diff_of "$pr" > "$desk/diff"

for focus in 'wrong results' 'errors and edge cases' 'what callers rely on'; do
  echo "<fork next=\"STARTED\" focus=\"$focus\">REVIEWER</fork>"
done
