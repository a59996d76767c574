#!/usr/bin/env bash
# Checks that there is something to release, and that the tests pass.
set -euo pipefail

last=$(git describe --tags --abbrev=0)
changes=$(git log --reverse --format='- %s' "$last..HEAD")
if [ -z "$changes" ]; then
  raymond emit result --status failed "there is nothing new since $last"
elif ! bash check.sh; then
  raymond emit result --status failed 'the tests fail'
else
  raymond emit goto NOTES --input-file - <<< "$changes"
fi
