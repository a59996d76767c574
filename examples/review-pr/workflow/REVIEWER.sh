#!/usr/bin/env bash
# A function returns its result byte for byte. Code in an attribute would need escapes.
echo '<function return="QUOTES">REVIEW</function>'
