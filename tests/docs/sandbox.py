"""A sandbox for the examples of the docs. It has its own network, an empty HOME and TMPDIR, and
overlays on the checkout and the build folder, so that commands can write there.

`enter` restarts the program in the sandbox, as in a new terminal, without the caller's variables
and files of sonde.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
INSIDE = """
mount -t tmpfs -o size=2g sandbox "$ROOM" && mkdir "$ROOM/home" "$ROOM/tmp" && ip link set lo up || exit 77
number=0
for folder in "$SOURCE" "$BUILD_FOLDER"; do
    number=$((number + 1))
    case $folder/ in "$SOURCE"/?*) continue ;; esac # under the first overlay already
    mkdir "$ROOM/upper$number" "$ROOM/work$number"
    mount -t overlay -o "$USERXATTR""lowerdir=$folder,upperdir=$ROOM/upper$number,workdir=$ROOM/work$number" \\
        sandbox "$folder" || exit 77
done
mount --bind "$ROOM/home" "$HOME_FOLDER"
export TMPDIR="$ROOM/tmp"
cd "$SOURCE"
exec "$@"
"""


def enter():
    """Does nothing in the sandbox. Outside, it runs the program again in the sandbox, and ends this
    process with the same exit status."""
    if os.environ.get("SANDBOX"):
        return
    room = tempfile.mkdtemp(prefix="sd-")  # a short path, because it contains sockets
    home = os.path.join(room + "-home")
    os.mkdir(home)
    root = os.geteuid() == 0
    keep = ("PATH", "SOURCE", "BUILD_FOLDER", "CCACHE_DIR", "LANG")
    rustup = os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup"))  # the user's toolchains
    environment = {name: os.environ[name] for name in keep if name in os.environ} | {
        **({"RUSTUP_HOME": rustup} if os.path.isdir(rustup) else {}),
        "SANDBOX": "1",
        "ROOM": room,
        "HOME": home,
        "HOME_FOLDER": home,
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "USERXATTR": "" if root else "userxattr,",
    }
    try:
        namespaces = ["--mount", "--net", "--propagation", "private", *([] if root else ["-r"])]
        command = ["unshare", *namespaces, "sh", "-c", INSIDE, "sh", sys.executable, *sys.argv]
        done = subprocess.run(command, env=environment, check=False)
    finally:
        shutil.rmtree(room, ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)
    if done.returncode == SKIPPED:
        print("skipped: namespaces with overlays are not permitted")
    sys.exit(done.returncode)


def source():
    return pathlib.Path(os.environ["SOURCE"])
