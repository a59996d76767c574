#!/usr/bin/env bash
# Checks out pull request 7 for `--input 7`, beside your own work, and starts three reviewers.
set -euo pipefail

check_out() { gh pr checkout "$1" --detach > /dev/null; }
diff_of() { gh pr diff "$1"; }

pr=${RAYMOND_INPUT:-}
[[ "$pr" =~ ^[0-9]+$ ]] || { echo 'which pull request? start with --input NUMBER' >&2; exit 1; }

desk=".work/$RAYMOND_RUN_ID"
mkdir -p "$desk"/{findings,order,dropped,proofs} && echo '*' > .work/.gitignore
echo "$pr" > "$desk/pr"
# Creates a separate worktree. First removes an incomplete one that an interrupted attempt created.
rm -rf "$desk/tree"
git worktree add --quiet --force --detach "$desk/tree"
(cd "$desk/tree" && check_out "$pr")
diff_of "$pr" > "$desk/diff"

for focus in 'wrong results' 'errors and edge cases' 'what callers rely on'; do
  echo "<fork focus=\"$focus\">REVIEWER</fork>"
done
echo '<goto wait="all">NEXT</goto>'
