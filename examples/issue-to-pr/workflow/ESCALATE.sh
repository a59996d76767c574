#!/usr/bin/env bash
# Says on the issue, once for each run, why a person is needed. Unfinished edits go into the stash.
set -euo pipefail

comments() { gh issue view "$1" --json comments --jq '.comments[].body'; }
comment() { gh issue comment "$1" --body-file "$2"; }

work=".work/$RAYMOND_RUN_ID"
issue=$(cat "$work/issue")
mark="(run $RAYMOND_RUN_ID)"
reason=${RAYMOND_RESULT_FILE:-/dev/null}            # an agent may forget its `input`
if [ ! -s "$reason" ]; then
  # The second time PLAN has had its visits, and this comes back as the reason.
  echo '<goto input="A person should decide something, but the question was left out.">PLAN</goto>'
  exit
fi
found=$(comments "$issue")
if ! grep -F "$mark" <<< "$found" > /dev/null; then
  { echo "This needs a person $mark:" && echo && cat "$reason" && echo; } > "$work/comment.md"
  comment "$issue" "$work/comment.md" > /dev/null
fi
git stash push --quiet --include-untracked --message "unfinished in $RAYMOND_RUN_ID"
echo "<result>issue $issue needs a person</result>"
