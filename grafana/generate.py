#!/usr/bin/env python3
"""Makes the dashboards from the catalogue: sonde metrics --json | grafana/generate.py DIR

The build runs it, into grafana/dashboards of the build folder. Each source of the catalogue has a
row of panels, each metric has a panel: counters as rates, gauges as they are, a line for each host,
and each GPU. Only the overview is not generated; its metrics have to be in the catalogue.
tests/grafana tests every panel through Grafana's data source; tests/conformance/test_grafana.py
checks their contents.
"""
import json
import sys

WIDTH, HEIGHT, COLUMNS = 8, 7, 3
UNITS = {"percent": "percent", "bytes": "bytes", "seconds": "s", "watts": "watt", "celsius": "celsius", "hertz": "hertz", "joules": "joule", "share": "percent", "bytes/s": "Bps",
         "volts": "volt", "megabytes": "decmbytes"}
RATES = {"bytes": "Bps", "seconds": "percentunit", "joules": "watt"}
SOURCE = {"type": "opentsdb", "uid": "sonde"}
# The data source reads whole seconds. With a finer interval, it would keep only one of a second's
# rates.
INTERVAL = "1s"
# A metric that every node has from level 2 on: its series list the hosts, and its answer contains
# the annotations.
ON_EVERY_NODE = "load_1m"
# An object, because Grafana 13 loses a text. Not global, because the data source requests no global
# annotations.
NOTES = {"refId": "Anno", "fromAnnotations": True, "target": ON_EVERY_NODE, "name": "notes", "isGlobal": False}
# Matches all hosts, one, and several: a wildcard would need an asterisk, and a list of literals
# accepts none.
HOSTS = {"tagk": "host", "type": "regexp", "filter": "^(${host:pipe})$", "groupBy": True}
NOT_PER_GPU = {"gpu_count"}
# Without it, Grafana draws a range from 0 to 100 (10,000 %) for a line of zeros.
SOFT_MAX = {"percentunit": 0.1}
LABELS = {"host": "${__field.labels.host}", "gpu": "GPU ${__field.labels.gpu}", "cluster": "${__field.labels.cluster}", "worker": "worker ${__field.labels.worker}"}

# Aggregates of all nodes: title, metric, aggregator.
OVERVIEW = [("nodes", "load_1m", "count"), ("CPU, mean of the nodes", "cpu_percent", "avg"), ("CPU, busiest node", "cpu_percent", "max"),
            ("memory, mean of the nodes", "memory_used_percent", "avg"), ("memory, fullest node", "memory_used_percent", "max"),
            ("memory of the job's processes", "job_resident_bytes", "sum"), ("processes of the job", "job_processes", "sum"), ("CPU time of the job", "job_cpu_seconds_total", "sum"),
            ("received over the network", "network_receive_bytes_total", "sum"), ("sent over the network", "network_transmit_bytes_total", "sum"),
            ("read from disks", "disk_read_bytes_total", "sum"), ("written to disks", "disk_written_bytes_total", "sum"),
            ("GPUs, mean utilization", "gpu_utilization_percent", "avg"), ("GPUs, least busy", "gpu_utilization_percent", "min"), ("power of all GPUs", "gpu_power_watts", "sum"),
            ("power of all nodes", "power_watts", "sum"), ("points that were dropped", "sonde_dropped_total", "sum")]


WORKERS, GPUS = ["cluster", "worker"], ["host", "gpu"]
# The metrics of sonde.dask: title, metric, help, unit, tags; for those in the catalogue, help and
# unit come from there. Workers' counters are seconds, shown as a share of time.
DASK = [("job", "dask_job", "The number of the job that the cluster is at.", "", ["cluster"]), ("dag", "dask_dag", "The number of the dag that the cluster is at, in its job.", "", ["cluster"]),
        ("memory of workers", "dask_worker_resident_bytes", "Of each worker's process.", "bytes", WORKERS),
        ("GPU utilization", "gpu_utilization_percent", "", "", GPUS), ("GPU memory", "gpu_memory_used_percent", "", "", GPUS), ("GPU memory activity", "gpu_memory_activity_percent", "", "", GPUS),
        ("CPU of workers", "dask_worker_cpu_percent", "Of a core.", "share", WORKERS),
        ("event loop", "dask_worker_event_loop_interval_seconds", "Between two turns of each worker's event loop.", "seconds", WORKERS), ("spilled", "dask_worker_spilled_bytes", "Dask's data on disk.", "bytes", WORKERS),
        ("managed memory", "dask_worker_managed_bytes", "Dask's data in memory.", "bytes", WORKERS), ("unmanaged memory", "dask_worker_unmanaged_bytes", "Of each worker's process, beside Dask's data.", "bytes", WORKERS),
        ("writing to disk", "dask_worker_spill_seconds_total", "The share of time in which a worker spilled data.", "seconds", WORKERS), ("reading from disk", "dask_worker_unspill_seconds_total", "The share of time in which a worker read spilled data.", "seconds", WORKERS),
        ("received over the network", "dask_worker_network_read_bytes_per_second", "By each worker's host, a second.", "bytes/s", WORKERS),
        ("transfers, incoming", "dask_worker_transfer_incoming_bytes", "On their way from other workers.", "bytes", WORKERS), ("transfers, outgoing", "dask_worker_transfer_outgoing_bytes", "On their way to other workers.", "bytes", WORKERS),
        ("sent over the network", "dask_worker_network_write_bytes_per_second", "By each worker's host, a second.", "bytes/s", WORKERS),
        ("time of incoming transfers", "dask_worker_transfer_incoming_seconds_total", "Of a second; those that go on at once count each.", "seconds", WORKERS), ("time of outgoing transfers", "dask_worker_transfer_outgoing_seconds_total", "Of a second; those that go on at once count each.", "seconds", WORKERS),
        ("interpreter's lock", "dask_worker_gil_contention_percent", "Of the time in which threads waited for it; needs gilknocker.", "percent", WORKERS)]


def target(metric, counter, tags):
    filters = [HOSTS if tag == "host" else {"tagk": tag, "type": "wildcard", "filter": "*", "groupBy": True} for tag in tags]
    return {"refId": "A", "datasource": SOURCE, "metric": metric, "aggregator": "sum" if counter else "avg",
            "downsampleInterval": "", "downsampleAggregator": "avg",
            "downsampleFillPolicy": "none",  # the data source reads null as 0, and fails on nan
            "disableDownsampling": False, "shouldComputeRate": counter, "isCounter": counter, "counterMax": "",
            "counterResetValue": "", "tags": {}, "filters": filters}


def panel(number, place, title, help, metric, counter, unit, tags):
    x, y = place
    # The data source ignores `alias`.
    legend = " ".join(LABELS[tag] for tag in tags) or title
    shown = (RATES if counter else UNITS).get(unit, "short")
    defaults = {"displayName": legend, "unit": shown, "min": 0 if unit == "percent" or counter else None,
                "max": 100 if unit == "percent" else None, "decimals": 0 if metric.endswith("_count") else None,
                "custom": {"fillOpacity": 10, "spanNulls": False, "axisSoftMax": SOFT_MAX.get(shown)}}
    return {"id": number, "type": "timeseries", "title": title, "description": help, "datasource": SOURCE,
            "gridPos": {"h": HEIGHT, "w": WIDTH, "x": x, "y": y}, "interval": INTERVAL,
            "fieldConfig": {"defaults": defaults, "overrides": []},
            # If a panel has only one line, its title is enough.
            "options": {"legend": {"showLegend": bool(tags), "displayMode": "list", "placement": "bottom", "calcs": []},
                        "tooltip": {"mode": "multi", "sort": "desc"}},
            "targets": [target(metric, counter, tags)]}


def variable(name, label, query, **more):
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE, "query": query, "definition": query, "refresh": 2, "includeAll": True, "allValue": ".*",
            "current": {"text": "All", "value": "$__all"}, "sort": 1, **more}


def dashboard(uid, title, panels, variables):
    notes = {"name": "notes", "datasource": SOURCE, "enable": True, "iconColor": "blue", "target": NOTES}
    return {"uid": uid, "title": title, "tags": ["sonde"], "schemaVersion": 38, "version": 1, "editable": True,
            "refresh": "5s", "time": {"from": "now-5m", "to": "now"}, "timezone": "browser",
            "templating": {"list": variables}, "panels": panels, "annotations": {"list": [notes]}}


def rows_of(metrics, tags_of):
    """A row for each source, with a panel for each of its metrics."""
    panels, y, number = [], 0, 1
    for source in dict.fromkeys(m["source"] for m in metrics):
        rows = [m for m in metrics if m["source"] == source]
        panels.append({"id": number, "type": "row", "title": source, "collapsed": False, "gridPos": {"h": 1, "w": 24, "x": 0, "y": y}, "panels": []})
        number, y = number + 1, y + 1
        for i, m in enumerate(rows):
            counter = m["kind"] == "counter"
            title = m["name"].removesuffix("_total") + (" per second" if counter else "")
            panels.append(panel(number, (i % COLUMNS * WIDTH, y + i // COLUMNS * HEIGHT), title, m["help"], m["name"], counter, m["unit"], tags_of(m)))
            number += 1
        y += (len(rows) + COLUMNS - 1) // COLUMNS * HEIGHT
    return panels


def node(metrics):
    shown = [m for m in metrics if m["level"] == 2]
    return dashboard("sonde-node", "sonde: nodes", rows_of(shown, lambda m: ["host"]), [variable("host", "Host", f"tag_values({ON_EVERY_NODE}, host)")])


def gpu(metrics):
    shown = [m for m in metrics if m["level"] == 3]
    panels = rows_of(shown, lambda m: ["host"] if m["name"] in NOT_PER_GPU else ["host", "gpu"])
    return dashboard("sonde-gpu", "sonde: GPUs", panels, [variable("host", "Host", "tag_values(gpu_count, host)")])


def job(metrics):
    catalogue, panels = {m["name"]: m for m in metrics}, []
    for i, (title, name, aggregator) in enumerate(OVERVIEW):
        m = catalogue[name]
        counter = m["kind"] == "counter"
        one = panel(i + 1, (i % COLUMNS * WIDTH, i // COLUMNS * HEIGHT), title, m["help"], name, counter, "" if aggregator == "count" else m["unit"], [])
        one["targets"][0].update(aggregator=aggregator)
        if aggregator == "count":
            one["fieldConfig"]["defaults"].update(decimals=0, min=0)
        panels.append(one)
    return dashboard("sonde-job", "sonde: job", panels, [])


def dask(metrics):
    catalogue, panels = {m["name"]: m for m in metrics}, []
    for i, (title, name, help, unit, tags) in enumerate(DASK):
        known = catalogue.get(name, {"help": help, "unit": unit})
        panels.append(panel(i + 1, (i % COLUMNS * WIDTH, i // COLUMNS * HEIGHT), title, known["help"], name, name.endswith("_total"), known["unit"], tags))
    for one in panels:
        one["fieldConfig"]["defaults"]["min"] = 0
    for one in panels[:2]:  # their points mark changes of the number
        one["fieldConfig"]["defaults"]["decimals"] = 0
        one["fieldConfig"]["defaults"]["custom"].update(lineInterpolation="stepAfter", showPoints="always")
        # the mean of two numbers is not a dag
        one["targets"][0].update(downsampleAggregator="last")
    return dashboard("sonde-dask", "sonde: Dask", panels, [variable("host", "Host", f"tag_values({ON_EVERY_NODE}, host)")])


def custom():
    one = panel(1, (0, 0), "$metric", "A metric of your own, or any other.", "$metric", False, "", ["host"])
    one["gridPos"] = {"h": 10, "w": 24, "x": 0, "y": 0}
    one["repeat"], one["repeatDirection"] = "metric", "v"
    metric = variable("metric", "Metric", "metrics()", includeAll=False, multi=True, allValue=None, current={})
    # Not for $metric, because the data source cannot look up several metrics.
    host = variable("host", "Host", f"tag_values({ON_EVERY_NODE}, host)")
    return dashboard("sonde-custom", "sonde: any metric", [one], [metric, host])


def loop(metrics):
    """The example ai_in_the_loop: figure 3 of the paper about the Dragon Telemetry Service."""
    cpu = next(m for m in metrics if m["name"] == "cpu_percent")
    rows = [("actual and predicted", ["actual", "predicted"], "sin(x), and what the model predicts.", "", []),
            ("difference", ["difference"], "The prediction minus the Taylor series, in each iteration.", "", []),
            ("CPU", ["cpu_percent"], cpu["help"], cpu["unit"], ["host"])]
    panels = []
    for i, (title, names, help, unit, tags) in enumerate(rows):
        one = panel(i + 1, (0, i * HEIGHT), title, help, names[0], False, unit, tags)
        one["gridPos"]["w"] = 24
        one["targets"] = [target(name, False, tags) | {"refId": chr(ord("A") + k)} for k, name in enumerate(names)]
        if len(names) > 1:
            # The data source names each line by its metric.
            del one["fieldConfig"]["defaults"]["displayName"]
            one["options"]["legend"]["showLegend"] = True
        # An iteration may take longer than a second.
        one["fieldConfig"]["defaults"]["custom"]["spanNulls"] = not tags
        panels.append(one)
    return dashboard("sonde-ai-in-the-loop", "sonde: AI in the loop", panels, [variable("host", "Host", f"tag_values({ON_EVERY_NODE}, host)")])


def main():
    metrics = json.load(sys.stdin)
    for name, content in (("job", job(metrics)), ("node", node(metrics)), ("gpu", gpu(metrics)), ("dask", dask(metrics)), ("custom", custom()), ("ai_in_the_loop", loop(metrics))):
        with open(f"{sys.argv[1]}/{name}.json", "w") as f:
            json.dump(content, f, indent=1, ensure_ascii=False)
            f.write("\n")


if __name__ == "__main__":
    main()
