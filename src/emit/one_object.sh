#!/bin/sh
# one_object.sh LD OBJCOPY AR IN.a OUT.a FOLDER: joins the objects of an archive into one and makes its hidden names local.
set -e
ld=$1 objcopy=$2 ar=$3 in=$4 out=$5 folder=$6
mkdir -p "$folder"
"$ld" -r -o "$folder/sonde.o" --whole-archive "$in"
"$objcopy" --localize-hidden "$folder/sonde.o"
rm -f "$out"
"$ar" rcs "$out" "$folder/sonde.o"
