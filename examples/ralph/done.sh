#!/usr/bin/env bash
# Accepts the result of a round if no item is open and the tests pass.
set -euo pipefail

if grep -F -- '- [ ]' TODO.md; then echo 'is still open'; exit 1; fi
./test.sh
