#!/bin/bash
# Runs the checks of dragon_checks.py with the original, dragonhpc 0.14.1 from PyPI, and compares
# the answers with dragon_answers.json.
#
#   tests/python/dragon_original.sh            prints the differences; exit code 1 if there are any
#   tests/python/dragon_original.sh --update   writes dragon_answers.json
#   tests/python/dragon_original.sh --beside SONDE PACKAGES
#                                              the original's runtime under `sonde run`: a program
#                                              with its import changed, one without, and one that
#                                              uses Batch; SONDE: build/sonde, PACKAGES:
#                                              build/bindings/python
#   tests/python/dragon_original.sh --dump SONDE PACKAGES
#                                              imports dumps of the original, and compares the
#                                              answers
#   tests/python/dragon_original.sh PROGRAM…   runs a program under the original
#
# Run it manually, because it installs 60 MB, and because the original's processes outlive their
# launcher after a failure. It takes about a minute, needs Python 3.11, and changes nothing outside
# of a temporary folder. One node: scripts replace `ssh` and `rsync`.
set -eu
here=$(dirname "$(readlink -f "$0")")
lab=$(mktemp -d)
mkdir "$lab/bin" "$lab/cwd" "$lab/dump"

# Ends leftover processes of the original: those that this folder's Python runs.
tidy() {
    for process in /proc/[0-9]*; do
        words=$({ tr "\\0" " " <"$process/cmdline"; } 2>/dev/null) || continue
        case "$words" in "$lab/"*) kill -9 "${process#/proc/}" 2>/dev/null || true ;; esac
    done
    rm -rf "$lab"
}
trap tidy EXIT

python3.11 -m venv "$lab/venv"
"$lab/venv/bin/pip" install --quiet dragonhpc==0.14.1 flask flask-jwt-extended gunicorn requests networkx
cat >"$lab/bin/ssh" <<'END'
#!/bin/bash
while [[ "$1" == -* ]]; do shift; done
shift
exec bash -c "$*"
END
cat >"$lab/bin/rsync" <<'END'
#!/bin/bash
mkdir -p "$(dirname "${3#*:}")"
cp "$2" "${3#*:}"
END
chmod +x "$lab/bin/ssh" "$lab/bin/rsync"
cat >"$lab/telemetry.yaml" <<END
aggregator_port: 14242
tsdb_server_port: 14243
default_tmdb_dir: /tmp
dump_node: localhost
dump_dir: $lab/dump
END

original() {
    (
        cd "$lab/cwd"
        export PATH="$lab/bin:$lab/venv/bin:$PATH" VIRTUAL_ENV="$lab/venv" USER="${USER:-root}"
        export DRAGON_TELEMETRY_LEVEL=2 DRAGON_TELEMETRY_CONFIG="$lab/telemetry.yaml"
        timeout -k 5 120 dragon -w ssh --hostlist localhost --network-prefix '^(lo|eth|en).*$' -T 2 "$@"
    )
}

if [ "${1:-}" = --beside ]; then
    sonde=$(readlink -f "$2")
    PYTHONPATH=$(readlink -f "$3")
    export PATH="$lab/bin:$lab/venv/bin:$PATH" VIRTUAL_ENV="$lab/venv" USER="${USER:-root}" PYTHONPATH
    cd "$lab/cwd"
    cat >"$lab/unchanged.py" <<'END'
from dragon.telemetry import Telemetry

if __name__ == "__main__":
    telemetry = Telemetry(timeout=30)
    telemetry.add_data("unchanged", 1.5, tagk="rank", tagv=3)
    telemetry.shutdown()
END
    timeout -k 5 120 "$sonde" run -q -l 2 --no-record -- dragon -s "$here/dragon_beside.py"
    timeout -k 5 120 "$sonde" run -q -l 2 --record "$lab/recording" --tsdb-server-port=4243 -- dragon -s "$lab/unchanged.py"
    "$sonde" query --list "$lab/recording" | grep 'unchanged{.*rank=3}'
    cat >"$lab/batch.py" <<'END'
from multiprocessing import set_start_method

import dragon  # noqa: F401
from dragon.workflows.batch import Batch


def square(x):
    return x * x


if __name__ == "__main__":
    set_start_method("dragon")
    batch = Batch()
    assert [task.get() for task in [batch.function(square, i) for i in range(20)]] == [i * i for i in range(20)]
    batch.join()
END
    timeout -k 5 240 "$sonde" run -q -l 2 --record "$lab/batch" --tsdb-server-port=4243 -- dragon -s "$lab/batch.py"
    "$sonde" query --list "$lab/batch" | grep 'num_running_tasks{'
    "$sonde" query --list "$lab/batch" | grep 'num_completed_tasks{'
    exit
fi
if [ "${1:-}" = --dump ]; then
    original "$here/dragon_dumps.py" write "$lab/answers.json"
    "$2" import --format dragon-sqlite -o "$lab/recordings" "$lab/dump"
    PYTHONPATH=$3 "$lab/venv/bin/python" "$here/dragon_dumps.py" compare "$lab/answers.json" "$lab/recordings"
    exit
fi
if [ $# -gt 0 ] && [ "$1" != --update ]; then
    original "$@"
    exit
fi
original "$here/dragon_checks.py" dragon.telemetry "$lab/answers.json"
if [ "${1:-}" = --update ]; then
    cp "$lab/answers.json" "$here/dragon_answers.json"
else
    diff -u "$here/dragon_answers.json" "$lab/answers.json"
fi
