# Reads the verdict of REVIEW, then ends the run or sends the change back to FIX. The first word
# decides. Every word except `accept` and `accepted` is a rejection.
set -uo pipefail

review=${RAYMOND_RESULT-}
IFS=$' \t\n:' read -r -d '' verdict _ <<< "$review"
case $(tr -cd '[:alpha:]' <<< "${verdict,,}") in
  accept | accepted) echo "<result>done: ${review#*ccept: }</result>" ;;
  *) printf 'a reviewer says: %s' "$review" | raymond emit goto FIX --input-file - ;;
esac
