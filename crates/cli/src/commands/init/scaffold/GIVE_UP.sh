# The other end: a person has to look. The change stays in the working directory as it is.
reason=${RAYMOND_INPUT:-no reason given}
# A tag in the reason must not end the result.
echo "<result>not done: ${reason//</‹}</result>"
