#!/usr/bin/env bash
# Looks for new issues, forks a worker for each, and looks again. A ring of scripts has no
# `max_visits`: it ends itself, after so many looks.
set -euo pipefail

looks=${RAYMOND_VAR_LOOKS:-96} every=${RAYMOND_VAR_EVERY:-5m} # eight hours
base=main
open_issues() { gh issue list --label night --json number --jq '.[].number'; }
read_issue() { gh issue view "$1" --json title,body --jq '.title + "\n\n" + .body'; }

desk=".work/$RAYMOND_RUN_ID"
grep -qsxF "$RAYMOND_VISIT" "$desk/looks" || echo "$RAYMOND_VISIT" >> "$desk/looks"
look=$(wc -l < "$desk/looks")
[ "$look" -eq 1 ] || sleep "$every"

# A tracker that does not answer makes a look without issues, not the end of the night.
issues=$(open_issues) || { echo "look $look: the tracker does not answer" >&2; issues=''; }
forks=''
for issue in $issues; do
  [[ "$issue" =~ ^[0-9]+$ ]] || continue
  # A branch means that somebody has it. If that was this very visit, before it was cut off, the fork
  # did not happen yet: the key of the visit tells.
  if git show-ref --quiet "refs/heads/night-$issue"; then
    [ "$(cat "$desk/taken/$issue" 2> /dev/null)" = "$RAYMOND_VISIT" ] || continue
  fi
  # Read before it is taken: what cannot be read is left to the next look.
  text="$desk/issues/$issue"
  if [ ! -e "$text" ]; then
    read_issue "$issue" > "$text.new" || { echo "look $look: issue $issue cannot be read" >&2; continue; }
    mv "$text.new" "$text"
  fi
  echo "$RAYMOND_VISIT" > "$desk/taken/$issue"
  tree="$desk/trees/$issue"
  [ -e "$tree" ] || git worktree add --quiet -b "night-$issue" "$tree" "$base" 2> /dev/null ||
    git worktree add --quiet --force "$tree" "night-$issue"
  mkdir -p "$tree/.work" && echo '*' > "$tree/.work/.gitignore"
  cp "$text" "$tree/.work/issue.md"
  forks+="<fork cd=\"$tree\" issue=\"$issue\">WORK</fork>"$'\n'
done

if [ "$look" -lt "$looks" ]; then
  echo "$forks<goto>POLL</goto>"
else
  echo "$forks<goto>REPORT</goto>"
fi
