# An effect on the world, under a key that stays the same however often this visit is tried.
echo "$RAYMOND_VISIT" >> published.log
echo "<result>published, $RAYMOND_RESULT</result>"
