#!/usr/bin/env bash
# Picks an issue and creates its branch. `--input 12` picks issue 12.
set -euo pipefail

base=main                                           # the base of new branches
next_issue() { gh issue list --label agent --limit 1 --json number --jq '.[].number'; }
read_issue() { gh issue view "$1" --json title,body --jq '.title + "\n\n" + .body'; }

work=".work/$RAYMOND_RUN_ID"
mkdir -p "$work" && echo '*' > .work/.gitignore
changes=$(git status --porcelain)
[ -z "$changes" ] || { echo 'commit or stash your own changes first' >&2; exit 1; }

# Stores the choice, so that a repeat after a crash picks the same issue.
issue=${RAYMOND_INPUT:-}
[ ! -s "$work/issue" ] || issue=$(cat "$work/issue")
[ -n "$issue" ] || issue=$(next_issue)
[ -n "$issue" ] || { echo '<result>nothing to do</result>'; exit; }
[[ "$issue" =~ ^[0-9]+$ ]] || { echo "not the number of an issue: $issue" >&2; exit 1; }
echo "$issue" > "$work/issue"

read_issue "$issue" > "$work/issue.md"
echo "$base" > "$work/base"
git switch --quiet "issue-$issue" 2> /dev/null || git switch --quiet --create "issue-$issue" "$base"
echo '<goto>PLAN</goto>'
