# Checks the change with the project's own command. A script costs nothing, so use one for every
# decision that needs no model. This one runs in the directory where you called `raymond run`.
set -uo pipefail

check() {
@CHECK@
}

# Escapes a text for the value of an attribute.
quoted() { LC_ALL=C sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/"/\&quot;/g'; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export CI=true # so that no test runner waits for a key
(set -e; check) > "$log" 2>&1
status=$?
end=$(tail -n 60 "$log" | tail -c 8000 | quoted)

case $status in
  # A function starts an empty conversation: the reviewer sees the change, not the effort.
  0) echo "<function return=\"DECIDE\" input=\"$(quoted <<< "${RAYMOND_INPUT-}")\">REVIEW</function>" ;;
  # A program is missing. No agent can fix that, so do not pay one to try.
  127) echo "<goto input=\"a program that the check needs is missing: $end\">GIVE_UP</goto>" ;;
  # A goto keeps the conversation: the agent that made the change fixes it.
  *) echo "<goto input=\"the check failed with status $status: $end\">FIX</goto>" ;;
esac
