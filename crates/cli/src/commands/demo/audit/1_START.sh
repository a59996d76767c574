# Three forks in one message are one transition: all workers start, and main continues at REPORT.
echo '<fork next="REPORT" area="parser">CHECK</fork>'
echo '<fork next="REPORT" area="network">CHECK</fork>'
echo '<fork next="REPORT" language="French">TRANSLATE</fork>'
