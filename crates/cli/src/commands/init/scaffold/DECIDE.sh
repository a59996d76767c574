# Reads the verdict of REVIEW, then ends the run or sends the change back to FIX.
set -uo pipefail

quoted() { LC_ALL=C sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/"/\&quot;/g'; }

case $(tr -d '[:space:]*`' <<< "${RAYMOND_RESULT-}") in
  [Aa]ccept*) echo "<result>done: ${RAYMOND_RESULT#*ccept: }</result>" ;;
  *) echo "<goto input=\"a reviewer says: $(quoted <<< "${RAYMOND_RESULT-}")\">FIX</goto>" ;;
esac
