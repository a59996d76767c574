#!/usr/bin/env bash
# Takes the next untried finding: at most ten in all, the worst of each reviewer first.
set -euo pipefail

desk=".work/$RAYMOND_RUN_ID"
cat "$desk"/order/* | sort --stable --key=1,1n | awk '!seen[$2]++ { print $2 }' > "$desk/list"
for finding in $(head -n 10 "$desk/list"); do
  if [ ! -e "$desk/proofs/$finding" ]; then
    echo "$finding" > "$desk/current"
    raymond emit reset PROVE --cd "$desk/tree" --input-file "$desk/findings/$finding"
    exit
  fi
done
echo '<goto>COMMENT</goto>'
