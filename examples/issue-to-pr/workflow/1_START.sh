#!/usr/bin/env bash
# Picks an issue and makes its branch. `--input 12` picks for you.
set -euo pipefail

base=main                                           # what branches start from
next_issue() { gh issue list --label agent --limit 1 --json number --jq '.[].number'; }
read_issue() { gh issue view "$1" --json title,body --jq '.title + "\n\n" + .body'; }

work=".work/$RAYMOND_RUN_ID"
mkdir -p "$work" && echo '*' > .work/.gitignore
[ -z "$(git status --porcelain)" ] || { echo 'commit or stash your own changes first' >&2; exit 1; }

# Picked once: run again after a crash, it is the same issue.
[ -s "$work/issue" ] || echo "${RAYMOND_INPUT:-$(next_issue)}" > "$work/issue"
issue=$(tr -dc '0-9' < "$work/issue")
[ -n "$issue" ] || { echo '<result>nothing to do</result>'; exit; }

read_issue "$issue" > "$work/issue.md"
echo "$base" > "$work/base"
git switch --quiet "issue-$issue" 2> /dev/null || git switch --quiet --create "issue-$issue" "$base"
echo '<goto>PLAN</goto>'
