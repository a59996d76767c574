#!/usr/bin/env bash
# Receives the outcomes of all workers, and writes the report.
set -euo pipefail

desk=".work/$RAYMOND_RUN_ID"
jq -r '.[] | "\(.attributes.item): \(.result)"' "$RAYMOND_RESULT_FILE" | sort > "$desk/all"
items=$(wc -l < "$desk/all")
migrated=$(grep -c ': migrated$' "$desk/all" || true)
{ echo "$migrated of $items migrated" && cat "$desk/all"; } > "$desk/report"
echo "<result>items: $items, report: $desk/report</result>"
