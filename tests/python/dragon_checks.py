"""Facts about the interface of the Dragon Telemetry Service, tested with either system: only the
import differs.

    sonde run -l 2 -- python3 dragon_checks.py sonde ANSWERS.json
    dragon … dragon_checks.py dragon.telemetry ANSWERS.json           (dragon_original.sh)

A check is a function with the name of its fact. Its result (a JSON value, or the name of the
exception) must be the same in both systems. The answers of the original, version 0.14.1, are in
dragon_answers.json; test_dragon.py compares sonde with them.

In answers, HOST replaces host names, and NOW replaces seconds since the epoch that the check has
not chosen.
"""

import importlib
import inspect
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

CHECKS = {}
SETTLE_S = 10.0  # a point that cannot be read after this time never will be


def check(function):
    CHECKS[function.__name__] = function
    return function


class Lab:
    """The common objects of the checks: the package, a Telemetry and a connected client."""

    def __init__(self, package):
        self.package = package
        self.t = importlib.import_module(package)
        self.telemetry = self.t.Telemetry()
        self.client = self.t.AnalysisClient()
        self.client.connect(timeout=300)
        self.now = int(time.time())

    def module(self, name):
        return importlib.import_module(f"{self.package}.{name}")

    def data(self, *args, points=1, **kwargs):
        """Returns get_data() as soon as it has at least `points` points, or at the deadline."""
        deadline = time.monotonic() + SETTLE_S
        while True:
            found = self.client.get_data(*args, **kwargs)
            if sum(len(series["dps"]) for series in found) >= points or time.monotonic() > deadline:
                return found

    def values(self, *args, **kwargs):
        return [sorted(series["dps"].values()) for series in self.data(*args, **kwargs)]

    def stored(self, name, value, **kwargs):
        """Returns the values of a metric after one add_data()."""
        self.telemetry.add_data(name, value, **kwargs)
        return self.values(name)


def parameters(function):
    """Returns names and defaults, in order; without self."""
    return [
        p.name if p.default is p.empty or p.name == "metrics_url" else f"{p.name}={p.default!r}"
        for p in inspect.signature(function).parameters.values()
        if p.name != "self" and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]


def shape(value):
    """Returns the types in a value."""
    if isinstance(value, dict):
        return {key: shape(v) for key, v in sorted(value.items())}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *([shape(value[0])] if value else [])]
    return type(value).__name__


# ---- names


@check
def package_has(lab):
    return [n for n in ("Telemetry", "AnalysisClient", "Detector", "CollectorGroup", "CollectorDetectorGroup", "SlowGPUDetector") if hasattr(lab.t, n)]


@check
def module_telemetry_has(lab):
    return lab.module("telemetry").Telemetry is lab.t.Telemetry


@check
def module_analysis_has(lab):
    module = lab.module("analysis")
    names = ("AnalysisClient", "Detector", "CollectorGroup", "CollectorDetectorGroup", "SlowGPUDetector")
    return [getattr(module, n) is getattr(lab.t, n) for n in names]


@check
def detectors_inherit(lab):
    t = lab.t
    return [issubclass(t.SlowGPUDetector, t.CollectorDetectorGroup), issubclass(t.CollectorDetectorGroup, t.Detector), issubclass(t.CollectorDetectorGroup, t.CollectorGroup)]


# ---- signatures: every parameter of the original, at its position (sonde may have more after them)

SIGNATURES = {
    "telemetry_init": ("Telemetry.__init__", "metrics_url timeout telem_cfg"),
    "telemetry_start": ("Telemetry.start", "telemetry_level"),
    "telemetry_add_data": ("Telemetry.add_data", "ts_metric_name ts_data timestamp telemetry_level tagk tagv"),
    "telemetry_shutdown": ("Telemetry.shutdown", ""),
    "client_connect": ("AnalysisClient.connect", "timeout"),
    "client_get_data": ("AnalysisClient.get_data", "metrics tags start_time"),
    "client_get_metrics": ("AnalysisClient.get_metrics", ""),
    "client_db_dump": ("AnalysisClient.db_dump", ""),
    "client_reboot": ("AnalysisClient.reboot", "exclude_huids exclude_hostnames"),
    "collector_init": ("CollectorGroup.__init__", "metric_name per_gpu collection_rate collector_args"),
    "collector_generate_policies": ("CollectorGroup.generate_policies", ""),
    "collector_test": ("CollectorGroup.collector_test", "collector_args"),
    "detector_init": ("Detector.__init__", "metric_name collection_rate sacred_nodes restartable_ddicts tags analysis_args"),
    "detector_analyze_data": ("Detector.analyze_data", "data analysis_args"),
    "detector_trigger_restart": ("Detector.trigger_restart", "nodes_to_remove sacred_nodes restartable_ddicts"),
    "both_init": ("CollectorDetectorGroup.__init__", "metric_name per_gpu collection_rate sacred_nodes restartable_ddicts tags collector_args analysis_args"),
    "slow_init": ("SlowGPUDetector.__init__", "collection_rate restartable_ddicts analysis_args collector_args"),
}


def signature_check(name, path, wanted):
    def run(lab):
        owner, method = path.split(".")
        words = wanted.split()
        return parameters(getattr(getattr(lab.t, owner), method))[: len(words)]

    run.__name__ = f"signature_{name}"
    check(run)


for _name, (_path, _wanted) in SIGNATURES.items():
    signature_check(_name, _path, _wanted)


# ---- Telemetry


@check
def level(lab):
    return [lab.telemetry.level, type(lab.telemetry.level).__name__]


@check
def level_in_the_environment(lab):
    return os.environ.get("DRAGON_TELEMETRY_LEVEL")


@check
def telemetry_takes_an_address(lab):
    return lab.t.Telemetry("http://localhost:4243/api/metrics").level


@check
def telemetry_takes_a_timeout(lab):
    return lab.t.Telemetry(timeout=5).level


def restore_configuration(path):
    os.environ.pop("DRAGON_TELEMETRY_CONFIG", None)
    if path is not None:
        os.environ["DRAGON_TELEMETRY_CONFIG"] = path


@check
def telemetry_takes_the_path_of_a_configuration(lab):
    before = os.environ.get("DRAGON_TELEMETRY_CONFIG")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        if before:
            with open(before) as own:
                file.write(own.read())
        file.write("\ncollector_rate: 0.5\n")
        file.flush()
        try:
            return [lab.t.Telemetry(telem_cfg=file.name).level, os.environ.get("DRAGON_TELEMETRY_CONFIG") == file.name]
        finally:
            restore_configuration(before)


@check
def telemetry_refuses_a_configuration_that_is_not_there(lab):
    before = os.environ.get("DRAGON_TELEMETRY_CONFIG")
    try:
        return lab.t.Telemetry(telem_cfg=os.path.abspath("nowhere.yaml")).level
    finally:
        restore_configuration(before)


@check
def start_again_stays(lab):
    return [lab.telemetry.start(), lab.telemetry.level]


@check
def add_data_returns(lab):
    return lab.telemetry.add_data("check_returns", 1.0)


@check
def a_point(lab):
    lab.telemetry.add_data("check_point", 1.5, timestamp=lab.now)
    return lab.data("check_point")


@check
def a_point_now(lab):
    before = int(time.time())
    lab.telemetry.add_data("check_now", 1.5)
    [series] = lab.data("check_now")
    [second] = series["dps"]
    return before <= int(second) <= int(time.time())


@check
def a_whole_number(lab):
    return [lab.stored("check_whole", 5), type(lab.values("check_whole")[0][0]).__name__]


@check
def a_bool(lab):
    return lab.stored("check_bool", True)


@check
def a_text_that_is_a_number(lab):
    return lab.stored("check_text", "0.5")


@check
def a_large_number(lab):
    return lab.stored("check_large", 1e300)


@check
def a_negative_number(lab):
    return lab.stored("check_negative", -2.25)


@check
def a_later_value_of_the_second_counts(lab):
    lab.telemetry.add_data("check_second", 1, timestamp=lab.now)
    lab.telemetry.add_data("check_second", 2, timestamp=lab.now)
    lab.telemetry.add_data("check_second", 3, timestamp=lab.now + 1)
    lab.data("check_second", points=2)
    return lab.values("check_second", points=2)


@check
def a_time_in_the_past(lab):
    lab.telemetry.add_data("check_past", 1, timestamp=lab.now - 100)
    return [[int(s) - lab.now for s in series["dps"]] for series in lab.data("check_past")]


@check
def a_level_above_the_runs(lab):
    lab.telemetry.add_data("check_above", 1, telemetry_level=4)
    lab.telemetry.add_data("check_below", 1, telemetry_level=2)
    lab.data("check_below")
    return [lab.values("check_above", points=0), lab.values("check_below")]


@check
def a_level_of_nothing(lab):
    lab.telemetry.add_data("check_level_0", 1, telemetry_level=0)
    return lab.values("check_level_0")


@check
def tagk_without_tagv(lab):
    lab.telemetry.add_data("check_tagk", 1, tagk="rank")
    return [series["tags"] for series in lab.data("check_tagk")]


@check
def tagv_without_tagk(lab):
    lab.telemetry.add_data("check_tagv", 1, tagv="rank")
    return [series["tags"] for series in lab.data("check_tagv")]


@check
def a_metric_that_is_a_number(lab):
    lab.telemetry.add_data(42, 1.0)
    return lab.values("42")


def name_check(name, metric):
    def run(lab):
        values = lab.stored(metric, 1.0)
        return [values, [s["metric"] for s in lab.data(metric)], metric in lab.client.get_metrics()]

    run.__name__ = f"name_{name}"
    check(run)


for _name, _metric in {
    "percent": "loss%", "blank": "a b", "parentheses": "lr(0)", "equals": "k=v", "braces": "x{y}", "comma": "a,b", "quote": 'say "hi"', "bracket": "w[0]",
    "plus": "a+b", "star": "a*b", "umlaut": "größe", "slash": "a/b", "hash": "n#1", "at": "a@b", "tab": "a\tb", "long": "m" * 300, "backslash": "a\\b",
    "dash_first": "-x", "question": "ok?", "emoji": "fire \U0001f525", "put": "put",
}.items():
    name_check(_name, _metric)


@check
def names_that_differ_in_one_sign_are_two_metrics(lab):
    lab.telemetry.add_data("pair%", 1.0)
    lab.telemetry.add_data("pair_", 2.0)
    return [lab.values("pair%"), lab.values("pair_")]


def tag_check(name, key, value):
    def run(lab):
        lab.telemetry.add_data(f"check_tag_{name}", 1.0, tagk=key, tagv=value)
        return [series["tags"] for series in lab.data(f"check_tag_{name}", tags=[key])]

    run.__name__ = f"tag_{name}"
    check(run)


for _name, (_key, _value) in {
    "text": ("rank", "a"), "number": ("rank", 7), "blank": ("step", "a b"), "percent": ("share", "50%"), "parentheses": ("fn", "f(x)"), "umlaut": ("ort", "Köln"),
    "key_blank": ("my key", "v"), "path": ("file", "/a/b.txt"), "comma": ("shape", "3,4"),
}.items():
    tag_check(_name, _key, _value)


# ---- AnalysisClient


@check
def connect_returns(lab):
    return lab.t.AnalysisClient().connect()


@check
def metrics_are_a_set(lab):
    return type(lab.client.get_metrics()).__name__


def wait_for_metrics(lab, wanted):
    deadline = time.monotonic() + SETTLE_S
    while not wanted <= lab.client.get_metrics() and time.monotonic() < deadline:
        pass
    return sorted(wanted & lab.client.get_metrics())


@check
def metrics_of_the_nodes(lab):
    return wait_for_metrics(lab, {"load_average", "used_RAM", "cpu_percent", "num_running_processes"})


@check
def metrics_of_higher_levels(lab):
    return sorted({"DeviceUtilization", "DeviceMemoryUtilization", "DevicePowerUsage", "db_size"} & lab.client.get_metrics())


@check
def metrics_of_ones_own(lab):
    lab.telemetry.add_data("check_own", 1)
    return wait_for_metrics(lab, {"check_own"})


def node_metric_check(name):
    def run(lab):
        found = lab.data(name)
        values = [v for series in found for v in series["dps"].values()]
        return [[sorted(s) for s in found], [series["tags"] for series in found], [s["metric"] for s in found], all(v >= 0 for v in values), type(values[0]).__name__]

    run.__name__ = f"data_of_{name}"
    check(run)


for _name in ("load_average", "used_RAM", "cpu_percent", "num_running_processes"):
    node_metric_check(_name)


@check
def data_of_an_unknown_metric(lab):
    return lab.client.get_data("check_nobody_knows")


@check
def data_of_known_and_unknown_metrics(lab):
    lab.telemetry.add_data("check_known", 1)
    return [s["metric"] for s in lab.data(["check_nobody_knows", "check_known", "nor_this"])]


@check
def data_of_no_metrics(lab):
    return lab.client.get_data([])


@check
def data_of_a_tuple(lab):
    return lab.client.get_data(("load_average",))


@check
def data_of_a_number(lab):
    return lab.client.get_data(5)


@check
def data_of_nothing(lab):
    return lab.client.get_data(None)


@check
def data_without_connect(lab):
    return lab.t.AnalysisClient().get_data("load_average")


@check
def metrics_without_connect(lab):
    return lab.t.AnalysisClient().get_metrics()


@check
def dump_without_connect(lab):
    return lab.t.AnalysisClient().db_dump()


@check
def data_shape(lab):
    lab.telemetry.add_data("check_shape", 1.0, timestamp=lab.now)
    found = lab.data("check_shape")
    return [type(found).__name__, [list(s) for s in found], shape(found[0]["tags"]), [type(k).__name__ for k in found[0]["dps"]]]


def emit_tagged(lab, metric):
    lab.telemetry.add_data(metric, 1.0, timestamp=lab.now)
    lab.telemetry.add_data(metric, 2.0, timestamp=lab.now, tagk="rank", tagv=0)
    lab.telemetry.add_data(metric, 3.0, timestamp=lab.now, tagk="rank", tagv=1)
    lab.data(metric, points=3)


def tags_check(name, tags):
    def run(lab):
        emit_tagged(lab, f"check_tags_{name}")
        found = lab.client.get_data(f"check_tags_{name}", tags=tags)
        return sorted(([s["tags"], sorted(s["dps"].values())] for s in found), key=json.dumps)

    run.__name__ = f"tags_{name}"
    check(run)


for _name, _tags in {
    "none": None, "host": "host", "list_of_host": ["host"], "rank": "rank", "list_of_rank": ["rank"], "host_and_rank": ["host", "rank"], "rank_and_host": ["rank", "host"],
    "empty": [], "unknown": "nobody", "number": 42,
}.items():
    tags_check(_name, _tags)


@check
def start_time_is_the_first_second(lab):
    for i in range(4):
        lab.telemetry.add_data("check_start", i, timestamp=lab.now + i - 10)
    lab.data("check_start", points=4)
    return lab.values("check_start", start_time=lab.now - 8)


@check
def start_time_in_the_future(lab):
    lab.telemetry.add_data("check_future", 1)
    lab.data("check_future")
    return lab.client.get_data("check_future", start_time=int(time.time()) + 1000)


@check
def the_last_five_minutes(lab):
    lab.telemetry.add_data("check_minutes", 1, timestamp=lab.now - 1000)
    lab.telemetry.add_data("check_minutes", 2, timestamp=lab.now - 10)
    lab.data("check_minutes", start_time=lab.now - 2000, points=2)
    return [lab.values("check_minutes"), lab.values("check_minutes", start_time=lab.now - 2000)]


# ---- collectors and detectors


def abstract(lab):
    class Both(lab.t.CollectorDetectorGroup):
        @staticmethod
        def collector_test(collector_args):
            return 1.0

        @staticmethod
        def analyze_data(data, analysis_args):
            return False, []

    class One(lab.t.Detector):
        @staticmethod
        def analyze_data(data, analysis_args):
            return False, []

    class Collector(lab.t.CollectorGroup):
        @staticmethod
        def collector_test(collector_args):
            return 1.0

    return Collector, One, Both


@check
def a_detector_without_arguments(lab):
    one = abstract(lab)[1]()
    return [one.metric_name, one.collection_rate, one.tags, one.analysis_args, one.sacred_nodes, one.restartable_ddicts]


@check
def a_detector_with_arguments(lab):
    one = abstract(lab)[1]("m", 5, ["n1"], [], ["host"], (1, 2))
    return [one.metric_name, one.collection_rate, one.tags, list(one.analysis_args), one.sacred_nodes, one.restartable_ddicts]


@check
def a_collector_without_arguments(lab):
    one = abstract(lab)[0]()
    return [one.metric_name, one.per_gpu, one.collection_rate, one.collector_args]


@check
def both_without_arguments(lab):
    one = abstract(lab)[2]()
    return [one.metric_name, one.per_gpu, one.collection_rate, one.collector_args, one.tags, one.analysis_args]


@check
def a_detector_of_no_analysis(lab):
    return lab.t.Detector.analyze_data([], None)


@check
def a_collector_of_no_test(lab):
    return lab.t.CollectorGroup.collector_test(None)


@check
def restart_is_static(lab):
    return isinstance(inspect.getattr_static(lab.t.Detector, "trigger_restart"), staticmethod)


@check
def slow_gpu_detector(lab):
    one = lab.t.SlowGPUDetector()
    return [one.metric_name, one.per_gpu, one.collection_rate, one.tags, one.sacred_nodes, one.sacred_hostname]


@check
def policies_of_nodes(lab):
    return len(abstract(lab)[0]().generate_policies())


@check
def policies_have_hosts(lab):
    return [policy.host_name for policy in abstract(lab)[0]().generate_policies()]


@check
def dump_shape(lab):
    found = lab.client.db_dump()
    return [type(found).__name__, [[d["type"], d["result"]["status"], type(d["result"]["message"]).__name__, sorted(d["result"])] for d in found]]


@check
def environment_of_a_child(lab):
    return subprocess.run(["printenv", "DRAGON_TELEMETRY_LEVEL"], capture_output=True, text=True).stdout


# ---- last, because it ends the original's service


@check
def zz_shutdown_returns(lab):
    return lab.telemetry.shutdown()


def plain(value, lab):
    """Converts to JSON, without values that differ from run to run."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = text.replace(json.dumps(socket.gethostname()), '"HOST"').replace(json.dumps(os.uname().nodename.split(".")[0]), '"HOST"')
    return json.loads(re.sub(rf'"{lab.now}"', '"NOW"', text))


def answers(package, names=None):
    lab = Lab(package)
    found = {}
    for name in sorted(names or CHECKS):
        try:
            found[name] = plain(CHECKS[name](lab), lab)
        except Exception as error:
            kinds = {c.__name__ for c in type(error).__mro__}
            found[name] = "raises " + next(k for k in (
                "NotImplementedError", "TimeoutError", "FileNotFoundError", "RuntimeError", "AttributeError", "TypeError", "ValueError", "KeyError", "Exception") if k in kinds)
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    return found


if __name__ == "__main__":
    written = json.dumps(answers(sys.argv[1], sys.argv[3:]), ensure_ascii=False, indent=1)
    with open(sys.argv[2], "w") as out:
        out.write(written + "\n")
