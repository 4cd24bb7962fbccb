#!/bin/sh
# docs/metrics.md is what the catalogue says now: metrics_page.sh PROGRAM PAGE
"$1" | diff -u "$2" - || { echo "docs/metrics.md is old: $1 > docs/metrics.md"; exit 1; }
