#!/usr/bin/env bash
# The first word of the review decides. Every word except `accept` and `accepted` is a rejection.
set -euo pipefail

verdict=$(grep -om1 '[[:alpha:]]\+' "$RAYMOND_RESULT_FILE" | head -n 1 || true)
if [[ "${verdict,,}" =~ ^accept(ed)?$ ]]; then
  echo '<goto>OPEN_PR</goto>'
else
  { printf 'The review says: '; cat "$RAYMOND_RESULT_FILE"; } |
    raymond emit goto IMPLEMENT --input-file -
fi
