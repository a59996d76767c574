#!/usr/bin/env bash
# Says on the issue, once for each run, why a person is needed. Unfinished edits go into the stash.
set -euo pipefail

comments() { gh issue view "$1" --json comments --jq '.comments[].body'; }
comment() { gh issue comment "$1" --body-file "$2"; }

work=".work/$RAYMOND_RUN_ID"
issue=$(cat "$work/issue")
mark="(run $RAYMOND_RUN_ID)"
if ! comments "$issue" | grep -F "$mark" > /dev/null; then
  { echo "This needs a person $mark:" && echo && cat "$RAYMOND_RESULT_FILE" && echo; } > "$work/comment.md"
  comment "$issue" "$work/comment.md" > /dev/null
fi
git stash push --quiet --include-untracked --message "unfinished in $RAYMOND_RUN_ID"
echo "<result>issue $issue needs a person</result>"
