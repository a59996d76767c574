# Reads the questions from a file beside the workflow, at no cost. An attribute may contain any
# text if `&`, `<` and its quote are written as entities.
quoted() { sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/"/\&quot;/g' "$1"; }
echo "<goto input=\"$(quoted "$RAYMOND_SCOPE/../questions.txt")\">PLAN</goto>"
