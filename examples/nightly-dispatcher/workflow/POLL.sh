#!/usr/bin/env bash
# Looks for new issues, forks a worker for each, and looks again. Scripts have no
# `max_visits`, so this script counts its looks and ends the loop itself.
set -euo pipefail

looks=${RAYMOND_VAR_LOOKS:-96} every=${RAYMOND_VAR_EVERY:-5m} # eight hours
base=main
open_issues() { gh issue list --label night --json number --jq '.[].number'; }
read_issue() { gh issue view "$1" --json title,body --jq '.title + "\n\n" + .body'; }

desk=".work/$RAYMOND_RUN_ID"
grep -qsxF "$RAYMOND_VISIT" "$desk/looks" || echo "$RAYMOND_VISIT" >> "$desk/looks"
look=$(wc -l < "$desk/looks")

# If the tracker does not answer, this look finds no issues, and the night continues.
issues=$(open_issues) || { echo "look $look: the tracker does not answer" >&2; issues=''; }
forks=''
for issue in $issues; do
  [[ "$issue" =~ ^[0-9]+$ ]] || continue
  # If the branch exists, a worker already has the issue. The exception: this visit created the
  # branch and was interrupted before the fork. Then `taken` contains the key of this visit.
  if git show-ref --quiet "refs/heads/night-$issue"; then
    [ "$(cat "$desk/taken/$issue" 2> /dev/null)" = "$RAYMOND_VISIT" ] || continue
  fi
  # Reads the issue before taking it. If that fails, the next look tries again.
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
  echo "$forks<goto after=\"$every\">POLL</goto>"
else
  echo "$forks<goto>REPORT</goto>"
fi
