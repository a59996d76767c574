#!/usr/bin/env bash
# Takes the next finding that nobody has tried to prove; at most ten.
set -euo pipefail

desk=".work/$RAYMOND_RUN_ID"
for finding in $(find "$desk/findings" -type f -printf '%f\n' | sort | head -n 10); do
  if [ ! -e "$desk/proofs/$finding" ]; then
    echo "$finding" > "$desk/current"
    text=$(sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/"/\&quot;/g' "$desk/findings/$finding")
    echo "<function return=\"PROOF\" input=\"$text\">PROVE</function>"
    exit
  fi
done
echo '<goto>COMMENT</goto>'
