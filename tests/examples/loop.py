"""What the tests of examples/ai_in_the_loop on one node and on several have in common: how the
example is built, the queries of its dashboard, and its phases."""

import json
import os
import pathlib
import shutil

SOURCE = pathlib.Path(os.environ["SOURCE"])
EXAMPLE = SOURCE / "examples/ai_in_the_loop"
DASHBOARD = pathlib.Path(os.environ["BUILD_FOLDER"]) / "grafana/dashboards/ai_in_the_loop.json"
TERMS = 20  # of the Taylor series

# Sends the queries of each panel to the job around it, as Grafana's data source does.
ASK = """
import json, os, sys, urllib.request
token = open(os.environ["SONDE_TOKEN_FILE"]).read().strip()
for panel in json.load(open(sys.argv[1]))["panels"]:
    for target in panel["targets"]:
        filters = [one | {"filter": one["filter"].replace("${host:pipe}", ".*")} for one in target["filters"]]
        query = {"metric": target["metric"], "aggregator": target["aggregator"], "downsample": "1s-" + target["downsampleAggregator"], "filters": filters}
        body = json.dumps({"start": int(sys.argv[2]), "queries": [query]}).encode()
        request = urllib.request.Request(os.environ["SONDE_URL"] + "/api/query", body, {"Authorization": "Bearer " + token})
        print(json.dumps([panel["title"], json.load(urllib.request.urlopen(request))]))
"""


def copy(folder, seen_as=None):
    """Copies the example, and the parts of sonde that it is built with, into a folder, which the
    compiler sees as `seen_as`. Writes what pkg-config says of an installed sonde."""
    seen_as = seen_as or folder
    library = pathlib.Path(os.environ["LIBRARY"]).resolve()
    shutil.copytree(EXAMPLE, folder / "programs")
    shutil.copytree(SOURCE / "include", folder / "include")
    shutil.copytree(SOURCE / "bindings/fortran", folder / "fortran")
    (folder / "lib").mkdir()
    for name in (library.name, "libsonde.so", "libsonde.so.0"):
        shutil.copy(library, folder / "lib" / name)
    shutil.copy(DASHBOARD, folder)
    (folder / "ask.py").write_text(ASK)
    (folder / "sonde.pc").write_text(f"fortran={seen_as}/fortran\nName: sonde\nDescription: sonde\nVersion: 1\nCflags: -I{seen_as}/include\n"
                                     f"Libs: -L{seen_as}/lib -lsonde -Wl,-rpath,{seen_as}/lib\n")


def panels(answers):
    """Returns title → the lines (metric, host) of a panel of figure 3, from the output of ASK."""
    found = {}
    for title, answer in map(json.loads, answers):
        found.setdefault(title, []).extend((one["metric"], one["tags"].get("host")) for one in answer if one["dps"])
    return {title: sorted(lines, key=str) for title, lines in found.items()}


def phases(iterations, trainings, ranks):
    """Returns name → number of spans of a run."""
    return {"iteration": iterations, "taylor": iterations, "inference": iterations, "training_set": trainings, "training": trainings,
            "terms": ranks * iterations, "points": ranks * trainings}
