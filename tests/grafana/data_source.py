"""The backend and the frontend of a data source: of the installed one in $GRAFANA_PLUGIN, or else
of the stand-ins."""

import os

import backend
from packages import Browser

PLUGIN = os.environ.get("GRAFANA_PLUGIN")


def source(settings, plugin=PLUGIN):
    """Returns the data source's backend as a server."""
    return backend.Plugin(plugin, settings) if plugin else backend.stand_in(settings)


def browser(plugin=PLUGIN):
    return Browser(f"{plugin}/module.js" if plugin else "-")
