# The parent does not wait for its workers, so it prints where their answers will be.
echo "<result>the answers are in answers-$RAYMOND_RUN_ID.tsv</result>"
