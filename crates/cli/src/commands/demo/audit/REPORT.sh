echo '<result>three workers are on their way</result>'
