#!/bin/sh
# symbols.sh LIBRARY.a LIBRARY.so: checks that a program that links libsonde sees only symbols
# sonde_*.
set -u
failed=0
for names in "$(nm -g --defined-only "$1" | awk 'NF == 3 { print $3 }')" "$(nm -D --defined-only "$2" | awk 'NF == 3 { print $3 }')"; do
    [ "$(echo "$names" | grep -c '^sonde_')" -ge 21 ] || { echo "too few functions are exported"; failed=1; }
    for name in $names; do
        case $name in
        sonde_* | __odr_asan* | __asan* | _init | _fini) ;;
        *) echo "exports $name"; failed=1 ;;
        esac
    done
done
readelf -d "$2" | grep -q NODELETE || { echo "$2 may be unloaded under running threads"; failed=1; }
readelf -d "$2" | grep -q 'SONAME.*libsonde.so.0]' || { echo "$2 is not called libsonde.so.0"; failed=1; }
# Static thread-local storage is scarce for a library that is loaded late.
tls=$(readelf -lW "$2" | awk '$1 == "TLS" { print $6 }')
[ $((${tls:-0})) -le 16 ] || { echo "$2 takes $tls bytes of static thread-local storage"; failed=1; }
exit $failed
