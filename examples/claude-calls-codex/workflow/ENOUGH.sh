echo "<result status=\"failed\">after two corrections there are still objections: $RAYMOND_RESULT</result>"
