"""A cluster on one machine: hosts with their own namespaces are connected by a bridge, with a real
munge, Slurm and sshd.

The lab changes nothing on the machine: it makes no named namespace, no file outside one temporary
folder, and no address in the machine's network. A host lives as long as its first process
(host.py). That process ends with this one, even after kill -9, and the kernel then removes
everything else. So any number of labs can run side by side, and none is left over.

    switch   a network namespace that holds only the bridge
    ctl      10.77.0.10   slurmctld
    n1…n3    10.77.0.11…  slurmd, sshd

/tmp, /run, /root, /var/log, /var/spool, /dev/shm of a host are private and empty. The hosts share
/mnt: /mnt/bin (sonde, emitter), /mnt/shared (for tests), /mnt/log, and /mnt/folders/NAME, the
machine's folders that a test names. Everything else of the machine is read-only on a host, so that
no command there can damage the machine's files. A test needs this because the project's folder may
be under /tmp or in the home of its owner.

The lab chooses the transport of nodes' data and passes it to every sonde in SONDE_TRANSPORT. For
libfabric's shm, the hosts share two things of the switch: /dev/shm, where the provider has named
memory, and its process ids, with which the provider copies between processes (process_vm_readv).
"""

import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from waiting import PATIENCE_S, continue_process, has_ended, stop_process, until  # noqa: E402, F401

PREFIX = "sonde-lab-"
LOCK = "sonde-lab.lock"  # a file that marks its folder as a lab's
HERE = pathlib.Path(__file__).resolve().parent
SLOW_LINK = HERE / "slow_link.py"
TOOLS = ["ip", "nsenter", "unshare", "mount", "munged", "slurmctld", "slurmd", "srun", "salloc", "sbatch", "sshd", "ssh", "ssh-keygen", "mpirun"]
ENVIRONMENT = {
    "PATH": "/mnt/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "USER": "root", "LC_ALL": "C.UTF-8", "TZ": "UTC",
    # Open MPI runs as root only with both of these variables.
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl_tcp_if_include": "eth0", "OMPI_MCA_oob_tcp_if_include": "eth0",
    "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}

CLEARED = ("/tmp", "/dev/shm", "/mnt/shared")

SLURM_CONF = """ClusterName=lab
SlurmctldHost=ctl(10.77.0.10)
AuthType=auth/munge
SlurmUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=300
KillWait=10
MailProg=/bin/true
SlurmdParameters=config_overrides
StateSaveLocation=/var/spool/slurm
SlurmdSpoolDir=/var/spool/slurm/%n
SlurmctldPidFile=/run/slurm/ctl.pid
SlurmdPidFile=/run/slurm/%n.pid
SlurmctldLogFile=/var/log/slurm/ctl.log
SlurmdLogFile=/var/log/slurm/%n.log
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName={nodes} CPUs=4 State=UNKNOWN
PartitionName=all Nodes={nodes} Default=YES MaxTime=INFINITE OverSubscribe=FORCE:8 State=UP
"""

SSHD_CONF = """ListenAddress 0.0.0.0
HostKey /mnt/ssh/host
PidFile /run/sshd.pid
AuthorizedKeysFile /mnt/ssh/id.pub
StrictModes no
UsePAM no
UseDNS no
PermitRootLogin yes
PasswordAuthentication no
MaxStartups 100
"""

SSH_CONF = """Host *
    IdentityFile /root/.ssh/id
    UserKnownHostsFile /mnt/ssh/known
    LogLevel ERROR
"""


def each(act, pids):
    for pid in pids:
        try:
            act(pid)
        except ProcessLookupError:
            pass


def skip_if(reason):
    """Ends the suite as skipped if `reason` is not None."""
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)


def why_not(transport="tcp"):
    """Returns the reason to skip the suite here, or None."""
    if os.geteuid() != 0:
        return "the lab needs root (namespaces with mounts)"
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=ENVIRONMENT["PATH"])]
    if missing:
        return f"the lab needs {' '.join(missing)} (tools/deps test)"
    tried = subprocess.run(["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--mount-proc", "sh", "-c",
                            "mount -t tmpfs t /mnt && ip link add b0 type bridge && ip link add v0 type veth peer name v1"],
                           capture_output=True, text=True)
    if tried.returncode == 0 and not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "the lab needs /dev/net/tun (slow links)"
    if transport != "tcp" and os.environ.get("FABRIC") != "yes":
        # A build with -Dfabric=enabled would have failed without libfabric.
        return "this sonde was built without libfabric (tools/deps build)"
    if tried.returncode != 0:
        return f"namespaces are not permitted here ({tried.stderr.strip().splitlines()[-1] if tried.stderr.strip() else 'unshare failed'})"
    return None


def die_with_us():
    """Makes the kernel kill the calling process when its parent ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _lock(root, make=0):
    """Takes the lock of a lab's folder, which a lab holds while it lives. Returns None if another
    process holds it."""
    fd = os.open(root / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | make, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another lab may have removed the folder between the two calls.
        if os.stat(root / LOCK).st_ino == os.fstat(fd).st_ino:
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return None


def sweep():
    """Removes the folders of killed labs, whose hosts have ended with them. A folder without the
    lock file stays, because it is not a lab's, even if its name is like one."""
    for root in pathlib.Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        try:
            lock = _lock(root)
        except OSError:
            continue
        if lock is not None:
            shutil.rmtree(root, ignore_errors=True)
            os.close(lock)


def _make_root():
    while True:
        root = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            lock = _lock(root, os.O_CREAT)
        except FileNotFoundError:
            lock = None
        if lock is not None:
            return root, lock
        # Another lab has removed the folder before this one held the lock.


class Host:
    """A host; `pid` is the id of its first process on this machine."""

    def __init__(self, name, process, log):
        self.name, self.process, self.log, self.pid = name, process, log, None

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hears(self, word):
        line = self.process.stdout.readline().strip()
        if line != word:
            raise RuntimeError(f"host {self.name} did not come up: {line or 'its first process ended'}: {self.log.read_text(errors='replace')[-1500:]}")

    def find_pid(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        self.pid = int(until(lambda: children.read_text().split(), f"a first process of {self.name}")[0])


class Lab:
    """A cluster, used as in `with Lab(binaries) as lab: …`. The hosts see each of `folders`
    (name → path), read-only, as /mnt/folders/NAME."""

    def __init__(self, binaries, names=("n1", "n2", "n3"), transport="tcp", folders=None):
        self.names = names
        self.folders = {name: str(path) for name, path in (folders or {}).items()}
        self.transport = transport
        self.shares_memory = transport == "fabric:shm"
        self.hosts, self.slow_links = {}, {}
        self.switch = None
        sweep()
        self.root, self.lock = _make_root()
        try:
            self._write(binaries)
            self._start()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends all hosts and removes the lab's folder. A second call does nothing."""
        for name in list(self.slow_links):
            self.slow(name)
        for host in [*self.hosts.values()] + ([self.switch] if self.switch else []):
            if host.pid and host.process.poll() is None:
                each(lambda pid: os.kill(pid, signal.SIGKILL), [host.pid])
            for stream in (host.process.stdin, host.process.stdout):
                stream.close()
            host.process.kill() if not host.pid else None
            host.process.wait()
        self.hosts, self.switch = {}, None
        shutil.rmtree(self.root, ignore_errors=True)
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    # ---- setup

    def _write(self, binaries):
        for folder in ("mnt/bin", "mnt/shared", "mnt/log", "mnt/ssh", "mnt/etc", "etc/slurm"):
            (self.root / folder).mkdir(parents=True)
        for name in self.folders:
            (self.root / "mnt/folders" / name).mkdir(parents=True)
        (self.root / "mnt/lab").write_text(self.root.name)
        for binary in binaries:
            shutil.copy2(binary, self.root / "mnt/bin")
        addresses = {"ctl": "10.77.0.10"} | {name: f"10.77.0.{11 + i}" for i, name in enumerate(self.names)}
        self.addresses = addresses
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for n, a in addresses.items()))
        (self.root / "etc/slurm/slurm.conf").write_text(SLURM_CONF.format(nodes=",".join(self.names)))
        unified = not pathlib.Path("/sys/fs/cgroup/unified").exists() and pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
        (self.root / "etc/slurm/cgroup.conf").write_text(f"CgroupPlugin={'autodetect' if unified else 'cgroup/v1'}\nCgroupAutomount=no\n")
        key = self.root / "mnt/etc/munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        ssh = self.root / "mnt/ssh"
        for name in ("host", "id"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", ssh / name], check=True)
        kind, public = (ssh / "host.pub").read_text().split()[:2]
        (ssh / "known").write_text("".join(f"{n},{a} {kind} {public}\n" for n, a in addresses.items()))
        (ssh / "config").write_text(SSH_CONF)
        (ssh / "sshd").write_text(SSHD_CONF)

    def _spawn(self, name):
        own = ["unshare", "--mount", "--uts", "--ipc", "--net", "--mount-proc"]
        if self.shares_memory and self.switch:
            command = ["nsenter", "--target", str(self.switch.pid), "--mount", "--pid", "--wd=.", *own]
        else:
            command = [*own, "--pid", "--fork", "--kill-child"]
        path = self.root / f"mnt/log/{name}.log"
        with path.open("w") as log:
            # A relative path: `processes` must not find this process by a word in the folder's
            # name.
            process = subprocess.Popen([*command, "python3", "host.py"], cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=die_with_us)
        return Host(name, process, path)

    def _start(self):
        self.switch = self._spawn("switch")
        self.switch.tell(json.dumps({"name": "switch"}))
        self.switch.hears("here")
        self.switch.find_pid()
        for name in self.addresses:
            self.hosts[name] = self._spawn(name)
        for name, host in self.hosts.items():
            services = [["slurmctld", "-D"]] if name == "ctl" else [["slurmd", "-D", "-N", name], [shutil.which("sshd", path=ENVIRONMENT["PATH"]), "-D", "-e", "-f", "/mnt/ssh/sshd"]]
            host.tell(json.dumps({"name": name, "address": self.addresses[name], "lab": str(self.root), "shares_memory": self.shares_memory, "folders": self.folders, "services": services}))
        for host in self.hosts.values():
            host.hears("here")
            host.find_pid()
        lines = ["link add name br0 type bridge", "link set dev br0 up"]
        for name, host in self.hosts.items():
            lines += [f"link add name v-{name} type veth peer name eth0 netns {host.pid}", f"link set dev v-{name} master br0", f"link set dev v-{name} up"]
        self._switch("ip", "-batch", "-", input="\n".join(lines) + "\n")
        for host in self.hosts.values():
            host.tell("go")
        for host in self.hosts.values():
            host.hears("ready")
        self.idle()

    def idle(self):
        """Waits until Slurm can allocate every node."""
        def states():
            asked = self.run("ctl", "sinfo", "-h", "-N", "-o", "%T")
            return asked.returncode == 0 and asked.stdout.split() == ["idle"] * len(self.names)
        until(states, lambda: "all nodes idle: " + self.run("ctl", "sinfo", "-N", "-l").stdout + self.log())

    def log(self):
        return "".join(f"\n--- {p.name}\n" + p.read_text(errors="replace")[-1500:] for p in sorted((self.root / "mnt/log").iterdir()))

    def _switch(self, *command, **more):
        # Only the network namespace is entered, so that `ip` still sees this machine's /proc and
        # finds the host's process there.
        return subprocess.run(["nsenter", "--target", str(self.switch.pid), "--net", *command], text=True, **{"check": True} | more)

    # ---- commands, processes and files of the hosts

    @property
    def shared(self):
        """Returns the folder that hosts see as /mnt/shared."""
        return self.root / "mnt/shared"

    def _inside(self, name, command, env):
        words = [f"{k}={v}" for k, v in (ENVIRONMENT | {"SONDE_TRANSPORT": self.transport} | (env or {})).items()]
        return ["nsenter", "--target", str(self.hosts[name].pid), "--mount", "--uts", "--ipc", "--net", "--pid", "env", "-i", "-C", "/root", *words, *map(str, command)]

    def run(self, name, *command, env=None, stdin=None, timeout=PATIENCE_S):
        """Runs a command on a host and waits for its end."""
        return subprocess.run(self._inside(name, command, env), input=stdin if stdin is not None else "", capture_output=True, text=True, timeout=timeout)

    def start(self, name, *command, env=None):
        """Starts a command on a host; `processes` lists it."""
        return subprocess.Popen(self._inside(name, command, env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                start_new_session=True, preexec_fn=die_with_us)

    def processes(self, name, word=""):
        """Returns the processes of a host (pid on this machine → command line) whose command line
        contains `word`."""
        # A host's processes have its namespaces of network and process ids. nsenter, which waits
        # outside for the end of a command, has only that of the network.
        def spaces(pid):
            return [os.readlink(f"/proc/{pid}/ns/{kind}") for kind in ("net", "pid")]
        home = spaces(self.hosts[name].pid)
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                if spaces(entry) != home:
                    continue
                command = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                state = pathlib.Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if state != "Z" and command and word in command:
                found[int(entry)] = command
        return found

    def signal(self, name, number, word):
        """Sends a signal to all processes of a host whose command line contains `word`. Some may
        end because others did."""
        each(lambda pid: os.kill(pid, number), self.processes(name, word))

    def file(self, name, path):
        """Returns a host's path as seen from this machine."""
        return pathlib.Path(f"/proc/{self.hosts[name].pid}/root{path}")

    def clear(self, name, *folders):
        """Empties folders that the lab made. It removes nothing outside the lab, nothing on another
        file system, and nothing behind a link."""
        for folder in folders:
            if folder not in CLEARED:
                raise ValueError(f"{folder} is not a folder of the lab's")
        # find's -xdev compares device numbers, which are equal for a bind mount of the same file
        # system.
        mounts = pathlib.Path(f"/proc/{self.hosts[name].pid}/mountinfo").read_text().splitlines()
        for point in (line.split()[4] for line in mounts):
            if any(point.startswith(folder + "/") for folder in folders):
                raise RuntimeError(f"cannot clear {' '.join(folders)} of host {name}: {point} is mounted there")
        # If the host's process id has been reused, the command would run outside the lab. So it
        # first compares the lab's name.
        cleared = self.run(name, "sh", "-c", '[ "$(cat /mnt/lab)" = "$0" ] && exec find "$@" -xdev -mindepth 1 -delete', self.root.name, *folders)
        if cleared.returncode != 0:
            raise RuntimeError(f"cannot clear {' '.join(folders)} of host {name}: {cleared.stderr}")

    # ---- failures

    def partition(self, name):
        self._switch("ip", "link", "set", "dev", f"v-{name}", "down")

    def heal(self, name):
        self._switch("ip", "link", "set", "dev", f"v-{name}", "up")

    def slow(self, name, delay_ms=0, loss_percent=0):
        """Delays each frame from and to the host, and drops some. If both are 0, restores the
        link."""
        link = self.slow_links.pop(name, None)
        if link:
            link.communicate()  # closes its standard input, which ends it
        if delay_ms or loss_percent:
            subprocess.run(["nsenter", "--target", str(self.hosts[name].pid), "--net", "python3", SLOW_LINK, "plain", "eth0"], check=True)
            link = subprocess.Popen(["nsenter", "--target", str(self.switch.pid), "--net", "python3", SLOW_LINK, "carry", f"v-{name}", "br0", str(delay_ms), str(loss_percent)],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_us)
            self.slow_links[name] = link
            if link.stdout.readline() != "ready\n":
                raise RuntimeError(f"no slow link to {name}")

    def kill(self, name, spare=("munged", "slurmd", "slurmctld", "sshd", "host.py")):
        """Simulates the death of a node: kills all of its processes at once, except the services,
        so that the node can be used again."""
        def running():
            return {pid for pid, command in self.processes(name).items() if not any(word in command for word in spare)}
        # All processes are stopped first, because a running one would restart a killed one.
        killed = set()
        while new := running() - killed:
            each(stop_process, new)
            killed |= new
        each(lambda pid: os.kill(pid, signal.SIGKILL), killed)
        # A process that waits for the disk ends only after that, and keeps its locks until then.
        until(lambda: all(map(has_ended, killed)), f"the killed processes on {name} have ended")
