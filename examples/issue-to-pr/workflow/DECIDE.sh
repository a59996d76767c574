#!/usr/bin/env bash
# The first word of the review decides. Every word except `accept` and `accepted` is a rejection.
set -euo pipefail

verdict=$(grep -om1 '[[:alpha:]]\+' "$RAYMOND_RESULT_FILE" | head -n 1 || true)
if [[ "${verdict,,}" =~ ^accept(ed)?$ ]]; then
  echo '<goto>OPEN_PR</goto>'
else
  review=$(sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/"/\&quot;/g' "$RAYMOND_RESULT_FILE")
  echo "<goto input=\"The review says: $review\">IMPLEMENT</goto>"
fi
