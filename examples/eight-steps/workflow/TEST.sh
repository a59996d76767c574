#!/usr/bin/env bash
# Step 5: this script, not the agent, decides when the call returns.
set -euo pipefail

if output=$(./test.sh 2>&1); then
  echo '<result>all tests pass</result>'
else
  { echo 'The tests fail:'; tail -n 40 <<< "$output"; } | raymond emit goto IMPLEMENT --input-file -
fi
