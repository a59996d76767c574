#!/usr/bin/env bash
# The parent does not wait for its workers: the last reviewer continues the review.
set -euo pipefail

echo "<result>the review will be in .work/$RAYMOND_RUN_ID/comment.md</result>"
