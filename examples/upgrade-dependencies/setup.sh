#!/usr/bin/env bash
# Creates try/: a project with four dependencies, and a registry in a folder.
set -euo pipefail
unset CDPATH
cd "$(dirname "$0")"
[ ! -e try ] || { echo 'try/ is there already: remove it first' >&2; exit 1; }
mkdir try
cd try
mkdir -p registry/{colors,dates,http,yaml}

echo '{"colors": "1.2.0", "dates": "4.0.1", "http": "2.8.0", "yaml": "0.9.4"}' | jq . > dependencies.json
echo '{"colors": "1.2.3", "dates": "4.1.0", "http": "3.0.0", "yaml": "0.9.5"}' | jq . > registry/newest.json
echo '1.2.3: fixes a crash on terminals without colours.' > registry/colors/CHANGES.md
echo '4.1.0: adds weeks. The first day of a week is now Monday.' > registry/dates/CHANGES.md
echo '3.0.0: timeouts are on by default, and the API is asynchronous.' > registry/http/CHANGES.md

cat > outdated.sh <<'CODE'
# Prints the packages that have a newer version, as JSON.
jq --slurpfile newest registry/newest.json '
  to_entries
  | map({name: .key, from: .value, to: $newest[0][.key]} | select(.from != .to))
' dependencies.json
CODE
cat > test.sh <<'CODE'
# The project relies on weeks that begin on Sunday.
version=$(jq -r .dates dependencies.json)
[ "$version" = 4.0.1 ] || { echo "a week of dates $version begins on Monday"; exit 1; }
CODE
cat > report.sh <<'CODE'
# Prints the outcome for each outdated package.
jq -r '.[] | [.name, .from, .to] | @tsv' <<< "$OUTDATED" | while read -r name from to; do
  if [ ! -s "plan/$name.json" ]; then what='not assessed'
  elif [ "$(jq -r .risk "plan/$name.json")" = high ]; then what="held back: $(jq -r .reason "plan/$name.json")"
  elif [ "$(jq -r --arg name "$name" '.[$name]' dependencies.json)" = "$to" ]; then what='upgraded'
  elif [ -e "plan/$name.back" ]; then what='put back: the tests fail'
  else what='not tried'; fi
  echo "- $name $from → $to: $what"
done
CODE
