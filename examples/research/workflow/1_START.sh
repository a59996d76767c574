# Nothing to pay for yet: the questions come from a file beside the workflow. An attribute may hold
# anything, as long as `&`, `<` and its quote are written as entities.
quoted() { sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/"/\&quot;/g' "$1"; }
echo "<goto input=\"$(quoted "$RAYMOND_SCOPE/../questions.txt")\">PLAN</goto>"
