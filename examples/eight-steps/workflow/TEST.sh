#!/usr/bin/env bash
# Step 5: this script, not the agent, decides when the call returns.
set -euo pipefail

if output=$(./test.sh 2>&1); then
  echo '<result>all tests pass</result>'
else
  output=$(tail -n 40 <<< "$output" | sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/"/\&quot;/g')
  echo "<goto input=\"The tests fail:
$output\">IMPLEMENT</goto>"
fi
