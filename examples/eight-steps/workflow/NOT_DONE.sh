#!/usr/bin/env bash
# The target of `then`. Returns from the call; without a caller, this ends the agent.
echo '<result status="failed">not done: too many rounds</result>'
