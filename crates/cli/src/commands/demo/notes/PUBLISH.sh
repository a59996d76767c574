# An external effect. The log gets the key of this visit, which is the same for every attempt.
echo "$RAYMOND_VISIT" >> published.log
echo "<result>published, $RAYMOND_RESULT</result>"
