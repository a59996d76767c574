# Checks the change with the project's own command. A script costs nothing, so use one for every
# decision that needs no model. This one runs in the directory where you called `raymond run`.
set -uo pipefail

check() {
@CHECK@
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export CI=true # so that no test runner waits for a key
(set -e; check) > "$log" 2>&1
status=$?
end() { tail -n 60 "$log" | tail -c 8000; }
# Prints a tag with any text from stdin as its input.
tag() { raymond emit "$@" --input-file -; }

case $status in
  # A function starts an empty conversation: the reviewer sees the change, not the effort.
  0) printf '%s' "${RAYMOND_INPUT-}" | tag function REVIEW --return DECIDE ;;
  # A program is missing. No agent can fix that, so do not pay one to try.
  127) { printf 'a program that the check needs is missing: '; end; } | tag goto GIVE_UP ;;
  # A goto keeps the conversation: the agent that made the change fixes it.
  *) { printf 'the check failed with status %s: ' "$status"; end; } | tag goto FIX ;;
esac
