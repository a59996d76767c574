# Reads the questions from a file beside the workflow, at no cost. `raymond emit` prints a tag with
# any text in it.
raymond emit goto PLAN --input-file "$RAYMOND_SCOPE/../questions.txt"
