#!/usr/bin/env bash
# Looks for an open pull request first, so that a repeat or another run creates no second one.
set -euo pipefail

existing_pr() { gh pr list --head "$1" --state open --json url --jq '.[].url'; }
create_pr() { gh pr create --head "$1" --base "$2" --title "$3" --body-file "$4"; }

work=".work/$RAYMOND_RUN_ID"
issue=$(cat "$work/issue")
branch="issue-$issue"
git push --quiet --set-upstream origin "$branch"

url=$(existing_pr "$branch")
if [ -n "$url" ]; then
  echo "<result>updated $url</result>"
else
  { cat "$work/pr.md" 2> /dev/null || true; echo; echo "Closes #$issue."; } > "$work/body.md"
  url=$(create_pr "$branch" "$(cat "$work/base")" "$(head -n 1 "$work/issue.md")" "$work/body.md")
  echo "<result>opened $url</result>"
fi
