echo '<result>three rounds, and still no agreement: look at it yourself</result>'
