# Where `then` leads when REVIEW has had its visits. What was on its way there is not lost: the
# session stays with the agent, and a person decides.
echo "<result>not accepted after 3 reviews: a person should look at it</result>"
