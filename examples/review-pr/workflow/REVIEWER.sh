#!/usr/bin/env bash
# A function's result is taken byte for byte. Code in an attribute would have to be quoted.
echo '<function return="QUOTES">REVIEW</function>'
