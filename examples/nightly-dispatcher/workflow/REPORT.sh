#!/usr/bin/env bash
# The last look is over, but workers may still run. `raymond show` prints their results.
set -euo pipefail

desk=".work/$RAYMOND_RUN_ID"
taken=$(find "$desk/taken" -type f -printf '%f\n' | sort -n | paste -sd' ')
echo "<result>looks: $(wc -l < "$desk/looks"), issues: ${taken:-none}</result>"
