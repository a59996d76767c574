#!/usr/bin/env bash
# Asks a person. After two days without an answer, nothing is released.
set -euo pipefail

[ -s .work/notes.md ] || { echo 'there are no notes' >&2; exit 1; }
raymond emit ask --next DECIDE --options 'publish|reject' --timeout 48h --then EXPIRED \
  "$(printf 'Shall I publish this release?\n\n%s' "$(cat .work/notes.md)")"
