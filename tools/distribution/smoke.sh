#!/bin/sh
# smoke.sh ARCHIVE FOLDER SOURCE - installs a tarball, a wheel or a package as a user does, and uses
# it. The system may have only a shell: without Python or a compiler, the checks that need them are
# left out. FOLDER must be empty and writable. SOURCE has hello.c, train.py, and a certificate.
set -eu
archive=$1 folder=$2 source=$3
export HOME="$folder/home" TMPDIR="$folder/tmp" SONDE_RUNS="$folder/runs" LC_ALL=C
unset SONDE_URL SONDE_JOB SONDE_SOCKET SONDE_LEVEL PYTHONPATH VIRTUAL_ENV 2>/dev/null || true
mkdir -p "$HOME" "$TMPDIR"
cd "$folder"
failed() {
    echo "smoke: $archive: $*" >&2
    exit 1
}
done_=
did() { done_="$done_${done_:+, }$*"; }
python=$(command -v python3 || true)
if [ "$python" ] && ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))'; then
    python=
fi

case $archive in
*.whl)
    [ "$python" ] || { echo "smoke: $archive: Python 3.9 or newer is not installed"; exit 0; }
    "$python" -m venv "$folder/first"
    "$folder/first/bin/python" -m pip install -q --no-index --disable-pip-version-check "$archive"
    prefix=$folder/first python=$folder/first/bin/python
    did "pip install"
    ;;
*.deb)
    dpkg -i "$archive" >installed || failed "dpkg -i: $(cat installed)"
    prefix=/usr
    did "dpkg -i"
    ;;
*.rpm) # unpacked, because no system here installs packages with rpm; its loader would look there
    mkdir "$folder/unpacked"
    rpm2archive - <"$archive" | tar -xz -C "$folder/unpacked" -f -
    prefix=$folder/unpacked/usr
    export LD_LIBRARY_PATH=$prefix/lib64
    did unpacked
    ;;
*)
    mkdir "$folder/unpacked"
    tar -xzf "$archive" -C "$folder/unpacked"
    mv "$folder/unpacked"/* "$folder/moved"
    prefix=$folder/moved
    did unpacked
    ;;
esac
sonde=$prefix/bin/sonde
"$sonde" version | grep -q '^sonde [0-9]' || failed "sonde version"
"$sonde" config >config
! grep -E ' not (installed|built)' config || failed "a part is missing"
"$sonde" doctor >doctor || true

# Queries return the emitted values, from the running job and from its recording.
"$sonde" run -q -- sh -c "for v in 1 2 3; do echo loss \$v; done | '$sonde' put && '$sonde' query --csv avg:0all-sum:loss" >live 2>&1 &&
    grep -q ',6[[:space:]]*$' live || failed "a query of the running job: $(cat live)"
"$sonde" query --csv avg:0all-sum:loss | grep -q ',6[[:space:]]*$' || failed "a query of the recording"
"$sonde" query --list | grep -q '^ *cpu_percent' || failed "no metrics of the node"
did "sonde run"
"$sonde" run -q --tls-cert "$source/cert.pem" --tls-key "$source/key.pem" -- \
    sh -c "'$sonde' put loss 5 && '$sonde' query --csv avg:0all-sum:loss" >live 2>&1 &&
    grep -q ',5[[:space:]]*$' live || failed "a query over HTTPS: $(cat live)"
did HTTPS
"$sonde" run -q --trace io -- cat "$source/hello.c" >/dev/null
"$sonde" query --list | grep -q 'io_' || failed "--trace io recorded nothing"
did --trace

if [ "$python" ]; then
    case $archive in *.whl | *.deb) ;; *) PYTHONPATH=$("$sonde" config --python-path) && export PYTHONPATH ;; esac
    PATH=${python%/*}:$PATH "$sonde" run -q -- "$python" "$source/train.py" >page
    grep -q '<script' page || failed "the page: $(head -c 300 page)"
    "$sonde" query --csv avg:0all-count:loss | grep -q ',30[[:space:]]*$' || failed "sonde run -- python train.py"
    did "python train.py"
fi
if command -v cc >/dev/null; then
    cc "$source/hello.c" $("$sonde" config --cflags --libs) -o hello-shared
    cc "$source/hello.c" $("$sonde" config --cflags --static-libs) -o hello-static
    programs="hello-shared hello-static"
    if command -v pkg-config >/dev/null; then
        PKG_CONFIG_PATH=$("$sonde" config --pkg-config)
        export PKG_CONFIG_PATH
        cc "$source/hello.c" $(pkg-config --cflags --libs sonde) -o hello-pkg
        cc -c "$source/hello.c" $(pkg-config --cflags sonde_client) -o hello.o
        cc hello.o $(pkg-config --libs sonde sonde_client) -o hello-client
        programs="$programs hello-pkg hello-client"
    fi
    for program in $programs; do
        "$sonde" run -q -l 1 "./$program"
        "$sonde" query --csv avg:0all-count:loss | grep -q ',20[[:space:]]*$' || failed "$program"
    done
    did "cc hello.c"
fi
echo "smoke: ${archive##*/}: ok: $done_"
