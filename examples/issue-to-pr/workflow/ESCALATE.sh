#!/usr/bin/env bash
# Comments on the issue, once for each run, why it needs a person. Stashes unfinished edits.
set -euo pipefail

comments() { gh issue view "$1" --json comments --jq '.comments[].body'; }
comment() { gh issue comment "$1" --body-file "$2"; }

work=".work/$RAYMOND_RUN_ID"
issue=$(cat "$work/issue")
mark="(run $RAYMOND_RUN_ID)"
reason=${RAYMOND_RESULT_FILE:-/dev/null}            # an agent may forget its `input`
if [ ! -s "$reason" ]; then
  # If PLAN has no visits left, its `then` leads back here, with this input as the reason.
  echo '<goto input="A person should decide something, but the question was left out.">PLAN</goto>'
  exit
fi
found=$(comments "$issue")
if ! grep -F "$mark" <<< "$found" > /dev/null; then
  { echo "This needs a person $mark:" && echo && cat "$reason" && echo; } > "$work/comment.md"
  comment "$issue" "$work/comment.md" > /dev/null
fi
git stash push --quiet --include-untracked --message "unfinished in $RAYMOND_RUN_ID"
echo "<result status=\"failed\">issue $issue needs a person</result>"
