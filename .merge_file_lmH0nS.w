#!/bin/sh
# Installs what is missing of the packages for the given purposes (build, 
test, 
bench, 
lint, 
fuzz), 
with apt, 
and says so.
# Where there is no apt, 
or no right to use it, 
it names what is missing and stops.
set -eu

packages_for() {
    case $1 in
    build) echo gcc libc6-dev meson ninja-build pkg-config libuv1-dev libmicrohttpd-dev libyaml-dev \
        libjansson-dev libzstd-dev zlib1g-dev python3 ;;
    test) echo g++ libcmocka-dev procps tzdata binutils python3-dev python3-venv mypy ;;
    bench) echo liblttng-ust-dev lttng-tools prometheus prometheus-node-exporter victoria-metrics wrk python3-dev python3-prometheus-client collectd-core ;;
    lint) echo git clang clang-format clang-tidy ;;
    fuzz) echo clang libclang-rt-14-dev ;;
    *) echo "tools/deps: unknown purpose '$1'" >&2; exit 2 ;;
    esac
}

wanted=$(for purpose in "$@"; do packages_for "$purpose"; done)

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    missing=
    for tool in cc meson ninja pkg-config; do
        command -v $tool >/dev/null || missing="$missing $tool"
    done
    [ -z "$missing" ] && exit 0
    echo "sonde: this system has no apt; please install:$missing and the libraries of docs/dependencies.md" >&2
    exit 1
fi

missing=
for package in $wanted; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "sonde: please have an administrator run: apt-get install$missing" >&2
        exit 1
    fi
    as_root=sudo
fi
echo "sonde: installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Services that packages bring (Prometheus, 
…) are not to be started: the benches start their own.
policy=/usr/sbin/policy-rc.d
made_policy=
if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | 
$as_root tee $policy >/dev/null && $as_root chmod 755 $policy && made_policy=yes
fi
status=0
{
    $as_root apt-get update -q &&
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
} >"$log" 2>&1 </dev/null || status=$?
[ -z "$made_policy" ] || $as_root rm -f $policy
if [ $status != 0 ]; then
    tail -n 20 "$log" >&2
    echo "sonde: apt-get could not install$missing" >&2
    exit 1
fi
