"""Runs a released OpenTSDB on loopback, with tables in memory, as a reference for sonde's answers.

tools/test fetches OpenTSDB with Maven into a folder of the build ($OPENTSDB). Without Java or
Maven, why_not() returns the reason.
"""
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "common"))
from waiting import PATIENCE_S  # noqa: E402

# The fuzzy row filter is off, because the tables in memory have none. Of two points with one time
# stamp, the newer one counts, as in sonde.
CONFIGURATION = """tsd.network.port = {port}
tsd.network.bind = 127.0.0.1
tsd.http.staticroot = {folder}
tsd.http.cachedir = {folder}
tsd.core.auto_create_metrics = true
tsd.core.meta.enable_tsuid_tracking = true
tsd.http.request.enable_chunked = true
tsd.http.request.max_chunk = 16777216
tsd.http.show_stack_trace = false
tsd.query.enable_fuzzy_filter = false
tsd.storage.fix_duplicates = true
"""


def why_not():
    """Returns the reason why OpenTSDB cannot run here, or None."""
    folder = pathlib.Path(os.environ.get("OPENTSDB", ""))
    if not any(folder.glob("opentsdb-*.jar")):
        return "OpenTSDB is not installed: it needs Java and Maven"
    return None if shutil.which("javac") else "OpenTSDB needs javac"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class OpenTSDB:
    """A running OpenTSDB, used as in
    `with OpenTSDB() as tsdb: tsdb.put(points); tsdb.request("GET", "/api/query?…")`."""

    def __enter__(self):
        jars = f"{os.environ['OPENTSDB']}/*"
        self.folder = tempfile.mkdtemp(prefix="sonde-opentsdb-")
        self.port = free_port()
        self.connection = None
        classes, configuration = f"{self.folder}/classes", f"{self.folder}/opentsdb.conf"
        subprocess.run(["javac", "-d", classes, "-cp", jars, *sorted(map(str, HERE.glob("org/hbase/async/*.java")))], check=True)
        pathlib.Path(configuration).write_text(CONFIGURATION.format(port=self.port, folder=self.folder))
        self.log = open(f"{self.folder}/log", "w")
        self.process = subprocess.Popen(["java", "-Xmx512m", "-cp", f"{classes}:{jars}", "net.opentsdb.tools.TSDMain", f"--config={configuration}"],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, cwd=self.folder)
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.request("GET", "/api/version")
                return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    words = pathlib.Path(self.log.name).read_text()[-2000:]
                    self.__exit__()
                    raise RuntimeError(f"OpenTSDB did not start: {words}") from None
                time.sleep(0.05)

    def __exit__(self, *_):
        if self.connection:
            self.connection.close()
        self.process.kill()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)

    def request(self, method, target, body=None):
        """Sends a request; returns (status, body). All requests share a connection, because
        thousands of connections would take longer than the requests."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            self.connection.request(method, target, body, {"Content-Type": "application/json"})
            answer = self.connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            raise

    def put(self, points):
        """Writes points, which are objects in the form of /api/put."""
        for i in range(0, len(points), 2000):
            status, body = self.request("POST", "/api/put?details", json.dumps(points[i:i + 2000]))
            if status not in (200, 204) or json.loads(body).get("failed"):
                raise RuntimeError(f"OpenTSDB refused points: {body[:500]}")
