# One line for each worker. The key makes a repeated visit visible: it is the same both times.
answers="answers-$RAYMOND_RUN_ID.tsv"
line="$RAYMOND_AGENT_ID	$RAYMOND_ATTR_QUESTION	$RAYMOND_RESULT"
grep -qsxF "$line" "$answers" || printf '%s\n' "$line" >> "$answers"
echo "<result>$RAYMOND_RESULT</result>"
