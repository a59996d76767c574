#!/usr/bin/env bash
# Where `then` leads: the worktree stays as it is, for a person to look at in the morning.
set -euo pipefail

echo "<result>night-$RAYMOND_ATTR_ISSUE is not ready: look at $PWD</result>"
