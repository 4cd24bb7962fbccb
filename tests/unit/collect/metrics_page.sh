#!/bin/sh
# Checks that docs/metrics.md is up to date with the catalogue: metrics_page.sh PROGRAM PAGE
"$1" | diff -u "$2" - || { echo "docs/metrics.md is old: $1 > docs/metrics.md"; exit 1; }
