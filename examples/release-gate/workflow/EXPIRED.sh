echo '<result status="failed">no answer came within two days</result>'
