"""The backend of Grafana's OpenTSDB data source, with the addresses of the Grafana server.

Plugin runs an installed data source (tests/grafana/plugin). StandIn imitates a recorded one: it
sends one POST for each query, with times in seconds, reads the answers strictly, and forwards
lookups.
"""

import atexit
import base64
import functools
import gzip
import http.client
import http.server
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "common"))
from waiting import PATIENCE_S  # noqa: E402

RESOURCES = "/api/datasources/uid/sonde/resources/"


class Refused(Exception):
    """The error with which the plugin answers instead of frames."""


def settings(url, token=None, version=4, basic=False):
    """Returns the settings of a provisioned data source. With `basic`, the token is the password of
    basic authentication."""
    made = {
        "url": url,
        "jsonData": {"tsdbVersion": version, "tsdbResolution": 1},
        "secureJsonData": {},
    }
    if basic:
        made.update(
            basicAuthEnabled=True,
            basicAuthUser="grafana",
            secureJsonData={"basicAuthPassword": token},
        )
    elif token:
        made["jsonData"]["httpHeaderName1"] = "Authorization"
        made["secureJsonData"]["httpHeaderValue1"] = f"Bearer {token}"
    return made


def duration(ms):
    """Returns a duration in whole units, so 90 s become 1m."""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if ms >= size:
            return f"{ms // size}{unit}"
    return f"{ms}ms"


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def asked(query):
    """Returns the sub-query of /api/query for a panel's query."""
    made = {"metric": query.get("metric", ""), "aggregator": query.get("aggregator", "")}
    if not query.get("disableDownsampling"):
        interval = query.get("downsampleInterval") or (
            duration(int(query["intervalMs"])) if query.get("intervalMs") else "1m"
        )
        if re.fullmatch(r"\d*\.\d*s", interval) and number(interval[:-1]) is not None:
            interval = f"{int(float(interval[:-1]) * 1000)}ms"
        fill = query.get("downsampleFillPolicy") or "none"
        made["downsample"] = f"{interval}-{query.get('downsampleAggregator', '')}" + (
            "" if fill == "none" else f"-{fill}"
        )
    if query.get("shouldComputeRate"):
        options = {"counter": bool(query.get("isCounter"))}
        most, reset = number(query.get("counterMax") or "-"), number(
            query.get("counterResetValue") or "-"
        )
        if most is not None:
            options["counterMax"] = most
        if reset is not None:
            options["resetValue"] = reset
        if most is None and not reset:
            options["dropResets"] = True
        made.update(rate=True, rateOptions=options)
    for name in ("tags", "filters"):
        if query.get(name):
            made[name] = query[name]
    if query.get("explicitTags"):
        made["explicitTags"] = True
    return made


def value(read):
    """Returns a number as Go's JSON decoder reads it into a float64, where null leaves the initial
    0."""
    if read is None:
        return 0.0
    if isinstance(read, bool) or not isinstance(read, (int, float)) or math.isinf(read):
        raise Refused(f"not a number: {read!r}")
    return float(read)


def no_constant(name):
    raise Refused(f"{name} is no JSON")


def typed(read, kind):
    if read is not None and not isinstance(read, kind):
        raise Refused(f"not as expected: {read!r}")
    return read or kind()


def frames(body, ref, version):
    try:
        answer = json.loads(body, parse_constant=no_constant)
    except ValueError as error:
        raise Refused(str(error)) from error
    made = []
    for element in typed(answer, list):
        element = typed(element, dict)
        tags, aggregated = typed(element.get("tags"), dict), typed(
            element.get("aggregateTags"), list
        )
        for tag in [*tags.values(), *aggregated]:
            typed(tag, str)
        dps = typed(element.get("dps"), list if version == 4 else dict)
        if version == 4:
            rows = [[value(v) for v in typed(row, list)] for row in dps]
            points = [(int(row[0]), row[1]) for row in rows]
        else:
            points = [(int(t), value(dps[t])) for t in sorted(dps)]
        custom = {"tagKeys": sorted(tags) + aggregated}
        for name in ("annotations", "globalAnnotations"):
            notes = [
                {
                    "description": typed(a.get("description"), str),
                    "startTime": value(a.get("startTime")),
                }
                for a in typed(element.get(name), list)
            ]
            if notes:
                custom[name] = notes
        name = typed(element.get("metric"), str)
        made.append(
            {
                "schema": {
                    "name": name,
                    "refId": ref,
                    "meta": {"type": "timeseries-multi", "typeVersion": [0, 1], "custom": custom},
                    "fields": [
                        {"name": "Time", "type": "time", "typeInfo": {"frame": "time.Time"}},
                        {
                            "name": name,
                            "type": "number",
                            "typeInfo": {"frame": "float64"},
                            "labels": tags,
                        },
                    ],
                },
                "data": {"values": [[t * 1000 for t, _ in points], [v for _, v in points]]},
            }
        )
    return made


class StandIn:
    def __init__(self, settings):
        self.settings = settings
        self.version = settings["jsonData"]["tsdbVersion"]
        address = urlsplit(settings["url"])
        self.host, self.query_string = address.netloc.rpartition("@")[2], address.query
        self.headers = {}
        secure = settings["secureJsonData"]
        pair = unquote(address.netloc.rpartition("@")[0])
        if settings.get("basicAuthEnabled"):
            pair = f"{settings['basicAuthUser']}:{secure['basicAuthPassword']}"
        if pair:
            self.headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        elif "httpHeaderName1" in settings["jsonData"]:
            self.headers[settings["jsonData"]["httpHeaderName1"]] = secure["httpHeaderValue1"]

    def send(self, method, path, parameters=None, body=None):
        target = path + (f"?{parameters}" if parameters else "")
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE_S)
        headers = {**self.headers, "Accept-Encoding": "gzip"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
            text = answer.read()
            return (
                answer.status,
                answer.reason,
                gzip.decompress(text) if answer.headers.get("Content-Encoding") == "gzip" else text,
            )
        finally:
            connection.close()

    def parameters(self, **more):
        return urlencode(
            sorted({**{k: v[0] for k, v in parse_qs(self.query_string).items()}, **more}.items()),
            quote_via=quote,
        )

    def one(self, query, start_ms, end_ms):
        body = json.dumps(
            {"start": start_ms // 1000, "end": end_ms // 1000, "queries": [asked(query)]}
        )
        try:
            status, reason, text = self.send(
                "POST",
                "/api/query",
                self.parameters(**({"arrays": "true"} if self.version == 4 else {})),
                body,
            )
            if status // 100 != 2:
                raise Refused(f"request failed, status: {status} {reason}")
            return {"status": 200, "frames": frames(text, query.get("refId", "A"), self.version)}
        except (Refused, OSError, http.client.HTTPException) as error:
            return {"error": str(error), "errorSource": "downstream", "status": 500, "frames": []}

    def queries(self, request):
        results = {
            q["refId"]: self.one(q, int(request["from"]), int(request["to"]))
            for q in request["queries"]
        }
        failed = any("error" in r for r in results.values())
        return (400 if failed else 200), json.dumps({"results": results}).encode()

    def resource(self, path, raw):
        asked = {k: v[0] for k, v in parse_qs(raw).items()}
        if (
            path == "api/suggest"
        ):  # the plugin forwards this unchanged, and loses the query of the data source's URL
            status, _, text = self.send("GET", "/api/suggest", raw)
            return status, text
        if path == "api/aggregators":
            status, _, text = self.send("GET", "/api/aggregators", self.query_string)
            return status, json.dumps(sorted(json.loads(text))).encode()
        if path == "api/config/filters":
            status, _, text = self.send("GET", "/api/config/filters", self.query_string)
            return status, json.dumps(sorted(json.loads(text))).encode()
        if path == "api/search/lookup" and asked.get("metric") and asked.get("type") == "key":
            status, _, text = self.send(
                "GET", "/api/search/lookup", self.parameters(m=asked["metric"], limit="1000")
            )
            found = {key for r in json.loads(text).get("results") or [] for key in r["tags"]}
            return status, json.dumps(sorted(found)).encode()
        if (
            path == "api/search/lookup"
            and asked.get("metric")
            and asked.get("type") == "keyvalue"
            and asked.get("keys")
        ):
            key, *more = [word.strip() for word in asked["keys"].split(",")]
            m = f"{asked['metric']}{{{','.join([f'{key}=*', *more])}}}"
            status, _, text = self.send(
                "GET",
                "/api/search/lookup",
                self.parameters(m=m, limit=str(self.settings["jsonData"].get("lookupLimit", 0))),
            )
            found = {
                r["tags"][key] for r in json.loads(text).get("results") or [] if key in r["tags"]
            }
            return status, json.dumps(sorted(found)).encode()
        return 400, b"no such resource"

    def health(self):
        status, _, _ = self.send("GET", "/api/suggest", self.parameters(q="cpu", type="metrics"))
        return 200 if status == 200 else 400


class Listener:
    """An HTTP server on loopback. `answer(method, path, query, body, headers)` returns the status,
    the text, and additional headers."""

    def __init__(self, answer):
        self.answer = answer

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                address = urlsplit(self.path)
                length = int(self.headers.get("Content-Length") or 0)
                status, text, *headers = answer(
                    self.command,
                    address.path,
                    address.query,
                    self.rfile.read(length) if length else b"",
                    self.headers,
                )
                self.send_response(status)
                for name, content in {
                    "Content-Type": "application/json",
                    "Content-Length": str(len(text)),
                    **dict(headers),
                }.items():
                    self.send_header(name, content)
                self.end_headers()
                self.wfile.write(text)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        class Crowd(http.server.ThreadingHTTPServer):
            request_queue_size = 1024
            daemon_threads = True

            def handle_error(self, request, client_address):
                # A client may close its connection at any time.
                if not isinstance(sys.exc_info()[1], ConnectionError):
                    super().handle_error(request, client_address)

        self.server = Crowd(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def stand_in(settings):
    source = StandIn(settings)

    def answer(method, path, query, body, _):
        if path == "/api/ds/query":
            return source.queries(json.loads(body))
        if path.startswith(RESOURCES):
            return source.resource(path[len(RESOURCES) :], query)
        return source.health(), b"{}"

    return Listener(answer)


@functools.cache
def bridge():
    """Builds the program that talks to a plugin as the Grafana server does; returns its path."""
    folder = tempfile.mkdtemp(prefix="sonde-grafana-")
    atexit.register(shutil.rmtree, folder)
    subprocess.run(["go", "build", "-o", f"{folder}/plugin", "."], cwd=HERE / "plugin", check=True)
    return f"{folder}/plugin"


class Plugin:
    """Runs the executable of an installed plugin, with the addresses of the Grafana server."""

    def __init__(self, folder, settings):
        executables = [p for p in pathlib.Path(folder).glob("gpx_*") if os.access(p, os.X_OK)]
        if not executables:
            raise RuntimeError(
                f"{folder} holds no executable gpx_*; name the folder of an installed data source"
            )
        mine = [p for p in executables if p.name.endswith("_linux_amd64")] or executables
        self.process = subprocess.Popen(
            [bridge(), mine[0]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.process.stdin.write(json.dumps(settings))
        self.process.stdin.flush()
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError(f"{mine[0]} did not start")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=PATIENCE_S)
