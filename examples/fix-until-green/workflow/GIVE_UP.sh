#!/usr/bin/env bash
# Where `then` leads when FIX has had its visits. The green steps stay; the rest goes into the stash.
set -euo pipefail

work=".work/$RAYMOND_RUN_ID"
git stash push --quiet --include-untracked --message "unfinished in $RAYMOND_RUN_ID"
commits=$(git rev-list --count "$(cat "$work/base")..HEAD")
echo "<result>gave up, commits: $commits, still failing: $(paste -sd' ' "$work/now")</result>"
