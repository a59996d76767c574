#!/usr/bin/env bash
# Acts on the answer. A repeated visit finds the tag that the first one made.
set -euo pipefail

last=$(git describe --tags --abbrev=0 --match 'v*')
next="v$((${last#v} + 1))"
if [ "$RAYMOND_RESULT" != publish ]; then
  raymond emit result --status failed 'a person rejected the release'
elif [ "$(git rev-parse "$last^{commit}")" = "$(git rev-parse HEAD)" ]; then
  raymond emit result "$last is published"
else
  git tag -a "$next" -F .work/notes.md
  raymond emit result "$next is published"
fi
