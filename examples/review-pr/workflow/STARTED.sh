#!/usr/bin/env bash
# A parent does not wait for its workers: the last reviewer goes on.
set -euo pipefail

echo "<result>the review will be in .work/$RAYMOND_RUN_ID/comment.md</result>"
