#!/usr/bin/env bash
# Keeps a finding only if its quoted line exists. Findings for the same line count once.
set -euo pipefail

desk=".work/$RAYMOND_RUN_ID"
tree="$desk/tree"
trimmed() { sed -e 's/^[[:space:]]*//' -e 's/[[:space:]]*$//'; }

consider() { # file, line, bug
  local line
  line=$(trimmed <<< "$2")
  if [ -n "$line" ] && git -C "$tree" ls-files --error-unmatch -- ":(literal)$1" > /dev/null 2>&1 &&
    trimmed < "$tree/$1" | grep -xF -- "$line" > /dev/null; then
    local key
    key=$(printf '%s\n%s\n' "$1" "$line" | cksum | cut -d' ' -f1)
    printf 'file: %s\nline: %s\nbug: %s\n' "$1" "$line" "$3" > "$desk/findings/$key"
    echo "$((++rank)) $key" >> "$desk/order/$RAYMOND_AGENT_ID"
  else
    printf '%s: %s\n' "$1" "$line" >> "$desk/dropped/$RAYMOND_AGENT_ID"
  fi
}

: > "$desk/dropped/$RAYMOND_AGENT_ID"
: > "$desk/order/$RAYMOND_AGENT_ID"
file='' line='' rank=0
while IFS= read -r text || [ -n "$text" ]; do
  case "$text" in
    'file: '*) file=${text#file: } line='' ;;
    'line: '*) line=${text#line: } ;;
    'bug: '*) consider "$file" "$line" "${text#bug: }" ;;
  esac
done < "$RAYMOND_RESULT_FILE"

echo "<result>reviewed: $RAYMOND_ATTR_FOCUS</result>"
