#!/usr/bin/env bash
# Posts one comment for each run.
set -euo pipefail

comments() { gh pr view "$1" --json comments --jq '.comments[].body'; }
comment() { gh pr comment "$1" --body-file "$2"; }

desk=".work/$RAYMOND_RUN_ID"
pr=$(cat "$desk/pr")
mark="(run $RAYMOND_RUN_ID)"
with() { # verdict: prints its findings, in order; untried findings have an empty verdict
  while read -r finding; do
    if [ "$(cat "$desk/proofs/$finding" 2> /dev/null)" = "$1" ]; then echo "$finding"; fi
  done < "$desk/list"
}
field() { sed -n "s/^$1: //p" "$desk/findings/$2"; }

{
  echo "## Review $mark"
  for finding in $(with proven); do
    printf '\n**%s**\n\n> %s\n\n' "$(field bug "$finding")" "$(field file "$finding"): $(field line "$finding")"
    printf 'This test fails:\n\n```sh\n%s\n```\n' "$(cat "$desk/proofs/$finding.test")"
  done
  [ -n "$(with proven)" ] || printf '\nNo bug was proven.\n'
  for finding in $(with 'not proven'); do
    printf '\nNot proven: %s (%s)\n' "$(field bug "$finding")" "$(field file "$finding")"
  done
  untried=$(with '' | wc -l)
  [ "$untried" -eq 0 ] || printf '\nNot tried: %s\n\n' "$untried"
  for finding in $(with ''); do
    printf -- '- %s (%s)\n' "$(field bug "$finding")" "$(field file "$finding")"
  done
  printf '\nDropped because the quoted line does not exist: %s\n' "$(cat "$desk"/dropped/* | wc -l)"
} > "$desk/comment.md"

found=$(comments "$pr")
if ! grep -F "$mark" <<< "$found" > /dev/null; then
  comment "$pr" "$desk/comment.md" > /dev/null
fi
[ ! -e "$desk/tree" ] || git worktree remove --force "$desk/tree"
echo "<result>commented on pull request $pr</result>"
