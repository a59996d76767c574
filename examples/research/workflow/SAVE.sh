# Writes one line for each worker. A repeated visit has the same line and does not write it again.
answers="answers-$RAYMOND_RUN_ID.tsv"
line="$RAYMOND_AGENT_ID	$RAYMOND_ATTR_QUESTION	$RAYMOND_RESULT"
grep -qsxF "$line" "$answers" || printf '%s\n' "$line" >> "$answers"
echo "<result>$RAYMOND_RESULT</result>"
