# Ends the run as failed (exit code 1): a person has to look. The change stays in the working directory.
reason=${RAYMOND_INPUT:-no reason given}
# A tag in the reason must not end the result.
echo "<result status=\"failed\">not done: ${reason//</‹}</result>"
