#!/usr/bin/env bash
# Creates try/ with two feeds and a script that renders a digest.
set -euo pipefail
unset CDPATH
cd "$(dirname "$0")"
[ ! -e try ] || { echo 'try/ is there already: remove it first' >&2; exit 1; }
mkdir -p try/feeds
cd try

cat > feeds/builds.jsonl <<'DATA'
{"id":"b1","day":"2026-03-01","text":"The nightly build of api took 41 minutes."}
{"id":"b2","day":"2026-03-02","text":"The nightly build of api failed: the disk of runner 3 is full."}
{"id":"b3","day":"2026-03-02","text":"The nightly build of web failed: no space left on device."}
DATA
cat > feeds/support.jsonl <<'DATA'
{"id":"s1","day":"2026-03-02","text":"A customer asks how invoices are exported to CSV."}
{"id":"s2","day":"2026-03-02","text":"Exports of invoices time out for large accounts."}
DATA
cat > render.sh <<'CODE'
#!/usr/bin/env bash
# Prints the digest of a day, from the files that `keep` wrote to parts/.
set -euo pipefail
echo "# Digest of $1"
jq -r '
  "",
  "## \(.title)" + (if .supported then "" else " (?)" end),
  "",
  "\(.sentence) [\(.items | join(", "))]"
' parts/*.json
CODE
