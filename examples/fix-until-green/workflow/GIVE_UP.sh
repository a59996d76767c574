#!/usr/bin/env bash
# The target of `then`, when FIX has no visits left. Keeps the commits and stashes other edits.
set -euo pipefail

work=".work/$RAYMOND_RUN_ID"
git stash push --quiet --include-untracked --message "unfinished in $RAYMOND_RUN_ID"
commits=$(git rev-list --count "$(cat "$work/base")..HEAD")
echo "<result status=\"failed\">gave up, commits: $commits, still failing: $(paste -sd' ' "$work/now")</result>"
