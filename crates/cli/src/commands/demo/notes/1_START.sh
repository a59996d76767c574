# The entry is a script: it costs nothing, and ends as every state does, with a tag.
echo '<goto input="search is twice as fast; dark mode; 14 refactorings">PLAN</goto>'
