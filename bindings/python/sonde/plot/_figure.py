"""Figures: Matplotlib itself, the two themes, units on axes, and files that are complete or
missing."""

import contextlib
import importlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Optional, Union

Path = Union[str, "os.PathLike[str]"]

FORMATS = ("png", "svg", "pdf")
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL = ((1e-9, "n"), (1e-6, "µ"), (1e-3, "m"), (1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"))
# The catalogue's units as axes show them, with the smallest and largest power of ten of their
# prefix.
_SYMBOLS = {
    "seconds": ("s", 1e-9, 1.0),
    "watts": ("W", 1e-3, 1e9),
    "joules": ("J", 1e-3, 1e12),
    "hertz": ("Hz", 1.0, 1e12),
    "volts": ("V", 1e-3, 1e3),
    "amperes": ("A", 1e-3, 1e3),
}
_PLAIN = {"percent": "%", "celsius": "°C", "rpm": "rpm"}
_FLAT = 0.5  # the axis begins at the lowest value if the spread is at most half of that value
_LARGE = 1e4  # larger numbers without a unit have a prefix: 31.5G
NEAR = 1.2  # a limit is shown if it is at most this multiple of the highest value


@dataclass(frozen=True)
class Theme:
    """Colours. People with any colour vision can distinguish those of `lines` (Okabe and Ito's)."""

    name: str
    background: str
    text: str
    muted: str
    grid: str
    missing: str  # of missing values in a heat map
    box: str
    alone: str  # of a single line
    alert: str
    cmap: str
    lines: tuple[str, ...]


LIGHT = Theme(
    "light", "#ffffff", "#1b1b1b", "#5f6368", "#dddddd", "#dddddd", "#9ECAE9", "#444444", "#B3261E", "Blues",
    ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#999933"),
)  # fmt: skip
DARK = Theme(
    "dark", "#15181c", "#e8eaed", "#a4abb3", "#363b42", "#3d434b", "#27556F", "#c8ccd1", "#FF8A80", "cividis",
    ("#56B4E9", "#F28E4B", "#2CC79E", "#F0A3CC", "#9AD0F5", "#F5C242", "#FFFFFF", "#D0D05A"),
)  # fmt: skip
THEMES = {theme.name: theme for theme in (LIGHT, DARK)}
# Further lines repeat the colours with another dash.
DASHES = ("-", "--", ":", "-.")


def library(name: str, user: str = "sonde.plot") -> Any:
    """Imports a module of Matplotlib or NumPy at its first use."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{user} needs Matplotlib (pip install matplotlib): {error}") from None


def theme_of(name: Optional[str]) -> Theme:
    if (name or "light") not in THEMES:
        raise ValueError(f"no theme {name!r}; there is {', '.join(THEMES)}")
    return THEMES[name or "light"]


def style(theme: Theme, font_points: float) -> dict[str, Any]:
    """Returns Matplotlib's settings for making a figure."""
    return {
        "font.size": font_points,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.titlesize": "medium",
        "axes.facecolor": theme.background,
        "figure.facecolor": theme.background,
        "savefig.facecolor": theme.background,
        "text.color": theme.text,
        "axes.labelcolor": theme.text,
        "axes.titlecolor": theme.text,
        "axes.edgecolor": theme.muted,
        "xtick.color": theme.muted,
        "ytick.color": theme.muted,
        "xtick.labelcolor": theme.text,
        "ytick.labelcolor": theme.text,
        "svg.hashsalt": "sonde",  # so that equal figures make equal files
        "svg.fonttype": "none",  # text stays text, so that readers can search it
    }


class Canvas:
    """A figure with axes below each other, and their common style."""

    def __init__(self, panels: int, width: float, height: float, theme: Theme = LIGHT, heights: Optional[list[float]] = None, user: str = "sonde.plot", share: bool = True) -> None:
        self.plt = library("matplotlib.pyplot", user)
        self.theme = theme
        self.font_points = min(14.0, max(7.0, width * 0.75))
        self.width_points = width * 72 * 0.9  # approximate width of an axis
        self.style = style(theme, self.font_points)
        with self.plt.rc_context(self.style):
            self.figure, axes = self.plt.subplots(
                panels, 1, sharex=share, squeeze=False, figsize=(width, height), layout="constrained",
                gridspec_kw={"height_ratios": heights} if heights else None,
            )  # fmt: skip
        self.axes = [row[0] for row in axes]

    def drawing(self) -> Any:
        """Returns the context in which all parts of the figure are drawn."""
        return self.plt.rc_context(self.style)

    def title(self, text: str) -> None:
        self.figure.suptitle(text, x=0.01, ha="left", fontsize="medium", color=self.theme.muted)

    def close_if_shown_otherwise(self, saved: bool) -> None:
        """Closes the figure if a notebook would show it twice (it shows all figures that pyplot
        keeps), or if it was saved."""
        if saved or "inline" in self.plt.get_backend():
            self.plt.close(self.figure)


# ---------------------------------------------------------------- units


def scale(unit: str, highest: float) -> tuple[str, float]:
    """Returns the unit as an axis shows it, and the number by which to divide the values. Bytes
    become the largest unit in which the highest value is at least 1; seconds, watts and others get
    a prefix."""
    base, slash, per = unit.partition("/")
    highest = abs(highest)
    if base == "bytes":
        power = 0
        while power < len(_BYTES) - 1 and highest >= 1024 ** (power + 1):
            power += 1
        return _BYTES[power] + slash + per, float(1024**power)
    if base in _SYMBOLS and not (base == "seconds" and slash):
        symbol, least, most = _SYMBOLS[base]
        fitting = [(factor, prefix) for factor, prefix in _DECIMAL if least <= factor <= most and factor <= highest]
        factor, prefix = fitting[-1] if fitting else (1.0, "")
        return prefix + symbol + slash + per, factor
    return _PLAIN.get(base, base if base not in _SYMBOLS else _SYMBOLS[base][0]) + slash + per, 1.0


def fit_values(axis: Any, unit: str, values: Iterable[float], theme: Theme, limit: Optional[float] = None) -> None:
    """Begins the axis at 0, or near the values if they are far above 0 and close together.
    Percentages get 0 to 100. A limit close above the values gets a line and a tick."""
    seen = [value for value in values if value == value]
    low, high = min(seen, default=0.0), max(seen, default=1.0) or 1.0
    if not unit and max(abs(low), abs(high)) >= _LARGE:
        axis.yaxis.set_major_formatter(library("matplotlib.ticker").EngFormatter(sep=""))
    if unit == "%" and low >= 0 and high <= 100:
        axis.set_ylim(-2, 102)
        return
    if low < 0:
        return  # Matplotlib's own range
    shown = limit if limit is not None and limit <= NEAR * high else None
    top = high if shown is None else max(high, shown)
    bottom = low if top - low < _FLAT * low else 0.0
    margin = 0.05 * (top - bottom) or 0.05 * top
    axis.set_ylim(bottom - margin if bottom else 0, top + margin)
    if shown is not None:
        axis.axhline(shown, color=theme.muted, linestyle=(0, (4, 4)), linewidth=0.8, zorder=1)
        axis.annotate(
            f"of {shown:.3g}", (1, shown), xycoords=axis.get_yaxis_transform(), xytext=(-4, -2), textcoords="offset points", ha="right", va="top", color=theme.muted
        )


# ---------------------------------------------------------------- files


def check_format(path: Path) -> None:
    """Raises ValueError if the name's ending is not a format of `sonde plot`."""
    if os.path.splitext(os.fspath(path))[1][1:].lower() not in FORMATS:
        raise ValueError(f"{os.fspath(path)}: the name of a picture ends with .{', .'.join(FORMATS[:-1])} or .{FORMATS[-1]}")


@contextlib.contextmanager
def _complete(path: str) -> Iterator[str]:
    """Yields a temporary name beside `path`. At the end the file gets the name `path`, or is
    removed."""
    folder = os.path.dirname(path) or "."
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(f"{path} is no regular file")
    handle, name = tempfile.mkstemp(prefix=".sonde-", suffix=os.path.splitext(path)[1], dir=folder)
    os.close(handle)
    try:
        yield name
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def save(figure: Any, path: Path, dpi: Optional[float] = None) -> None:
    """Writes a picture in the format that the name's ending gives; without an ending, a PNG whose
    name gets .png. The file is complete or missing. The same figure makes the same PNG, SVG or PDF.
    """
    path = os.fspath(path)
    if not os.path.splitext(path)[1]:
        path += ".png"
    kind = os.path.splitext(path)[1][1:].lower()
    more: dict[str, Any] = {"pil_kwargs": {"optimize": True}} if kind == "png" else {}
    if kind in FORMATS:
        more["metadata"] = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
    with library("matplotlib").rc_context({"svg.hashsalt": "sonde", "svg.fonttype": "none"}), _complete(path) as name:
        figure.savefig(name, format=kind, facecolor=figure.get_facecolor(), **({"dpi": dpi} if dpi else {}), **more)
