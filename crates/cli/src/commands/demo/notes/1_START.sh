# The first state is a script. It costs nothing, and like every state it ends with a tag.
echo '<goto input="search is twice as fast; dark mode; 14 refactorings">PLAN</goto>'
