echo '<result status="failed">nobody answered within two days</result>'
