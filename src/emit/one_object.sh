#!/bin/sh
# one_object.sh LD OBJCOPY AR OUT.a FOLDER IN.a [MORE.a…]: joins the objects of an archive, and what
# they need of the others, into one and makes its hidden names local.
set -e
ld=$1 objcopy=$2 ar=$3 out=$4 folder=$5 in=$6
shift 6
mkdir -p "$folder"
name=$folder/$(basename "$out" .a).o
"$ld" -r -o "$name" --whole-archive "$in" --no-whole-archive --start-group "$@" --end-group
"$objcopy" --localize-hidden "$name"
rm -f "$out"
"$ar" rcs "$out" "$name"
