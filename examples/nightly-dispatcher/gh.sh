#!/usr/bin/env bash
# Stands in for `gh`: issues are files in try/tracker. The first look lists only one issue.
set -euo pipefail
cd "$(dirname "$0")/../tracker"
case "$1 $2" in
  'issue list')
    echo look >> looks
    find issues -type f -printf '%f\n' | sort -n | sed "$(wc -l < looks)q"
    ;;
  'issue view') cat "issues/$3" ;;
  *) echo "gh: not known here: $*" >&2 && exit 1 ;;
esac
