"""Draws marks on axes: lines, bands, boxes, heat, shades. This module knows only numbers and
axes."""

import importlib
from collections.abc import Sequence
from typing import Any, Optional

from ._figure import DASHES, Theme

# a narrower stretch is not shaded, because hundreds of them would look like a barcode
_SHADE_MIN_POINTS = 3
_FLIERS_MAX = 200  # per box; the outermost ones
_LABEL_MAX = 48  # characters

Stretch = tuple[float, float, str, str]  # begin, end, label, and a shorter one


def cut(text: str, most: int = _LABEL_MAX) -> str:
    """Cuts the middle out of a long label."""
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


def cut_apart(texts: Sequence[str], most: int = _LABEL_MAX) -> list[str]:
    """Cuts the middle out of long labels. If two would become equal, keeps the text around the
    place where they begin to differ."""
    groups: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        groups.setdefault(cut(text, most), []).append(text)
    apart: dict[str, str] = {}
    for short, members in groups.items():
        same = 0
        while len(members) > 1 and len({text[: same + 1] for text in members}) == 1:
            same += 1
        begin, room = members[0][: most // 3], most - most // 3 - 2
        for text in members:
            apart[text] = short if len(members) == 1 else f"{begin}…{text[max(len(begin), same - 3) :][:room]}…"
    return [apart[text] for text in texts]


def line(axis: Any, theme: Theme, x: Sequence[float], y: Sequence[float], number: int, label: str, *, points: int, width_points: float, plain: bool = False, **more: Any) -> Any:
    """Draws a line with a colour and dash of its own; `number` counts the lines of the axis. NaN
    interrupts the line. A value between two gaps is a dot, because a line of one point is
    invisible."""
    thick = 1.4 if points < width_points / 2 else 0.8
    [drawn] = axis.plot(
        x, y,
        color=theme.alone if plain else theme.lines[number % len(theme.lines)],
        linestyle=DASHES[number // len(theme.lines) % len(DASHES)],
        label=label,
        **{"linewidth": thick, "marker": "", **more},
    )  # fmt: skip
    lonely = [at for at, value in enumerate(y) if value == value and not (at and y[at - 1] == y[at - 1]) and not (at + 1 < len(y) and y[at + 1] == y[at + 1])]
    if lonely:
        drawn.set_marker("o")
        drawn.set_markevery(lonely)
        drawn.set_markersize(3 if sum(value == value for value in y) > 1 else 6)
    return drawn


def band(axis: Any, theme: Theme, x: Any, rows: dict[str, Any], count: int, number: int = 0, own: str = "") -> None:
    """Draws the band of many series: the range from their lowest to their highest values, the range
    between their quartiles, and their mean. `rows` has min, low, mean, high and max for each x;
    `own` is the beginning of the names of the `number`-th band of an axis."""
    colour = theme.lines[number % len(theme.lines)]
    axis.fill_between(x, rows["min"], rows["max"], color=colour, alpha=0.18, linewidth=0, label=f"{own}min to max of {count:,} series")
    axis.fill_between(x, rows["low"], rows["high"], color=colour, alpha=0.38, linewidth=0, label=f"{own}middle half of them")
    axis.plot(x, rows["mean"], color=colour, linewidth=1.4, label=f"{own}mean")


def _parts(colour: str) -> list[int]:
    return [int(colour[at:at + 2], 16) for at in (1, 3, 5)]  # fmt: skip


def mixed(colour: str, other: str, part: float) -> str:
    """Mixes two colours: `part` of the first, the rest of the second."""
    return "#" + "".join(f"{round(part * a + (1 - part) * b):02x}" for a, b in zip(_parts(colour), _parts(other)))


def readable_on(colour: str) -> str:
    """Returns black or white, whichever has more contrast (WCAG's relative luminance)."""
    linear = [(c / 255 / 12.92) if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in _parts(colour)]
    return "#ffffff" if sum(part * c for part, c in zip((0.2126, 0.7152, 0.0722), linear)) < 0.179 else "#000000"


def boxes(axis: Any, theme: Theme, places: Sequence[float], pools: Sequence[Sequence[float]], box_points: float, widths: float) -> None:
    """Draws a box with whiskers (1.5 times its length) for each pool that has values. `box_points`
    is the width available to a box."""
    cbook = importlib.import_module("matplotlib.cbook")
    edge: dict[str, Any] = {"linewidth": min(0.8, box_points / 10)}
    kept = [(place, pool) for place, pool in zip(places, pools) if len(pool)]
    if not kept:
        return
    stats = cbook.boxplot_stats([pool for _, pool in kept])
    for one in stats:
        outside = sorted(one["fliers"])
        one["fliers"] = outside if len(outside) <= _FLIERS_MAX else outside[: _FLIERS_MAX // 2] + outside[-_FLIERS_MAX // 2 :]
    axis.bxp(
        stats,
        positions=[place for place, _ in kept],
        widths=widths,
        patch_artist=True,
        manage_ticks=False,
        showcaps=False,
        boxprops={"facecolor": theme.box, "edgecolor": theme.lines[0], **edge},
        whiskerprops={"color": theme.lines[0], **edge},
        medianprops={"color": theme.lines[1], "linewidth": min(1.6, 0.2 + box_points / 4)},
        flierprops={"marker": ".", "markersize": 3, "markerfacecolor": theme.muted, "markeredgecolor": "none"},
    )


def heat(axis: Any, theme: Theme, edges: Sequence[float], cells: Any, low: float, high: float) -> Any:
    """Draws a row of cells for each series, the first on top. NaN has the colour of missing
    values."""
    rows = [row - 0.5 for row in range(len(cells) + 1)]
    return axis.pcolormesh(edges, rows, cells, cmap=theme.cmap, vmin=low, vmax=high, rasterized=True)


def shade(axes: Sequence[Any], theme: Theme, stretches: Sequence[Stretch], width_points: float, font_points: float) -> None:
    """Shades every second stretch if it is wide enough. Writes its label above the first axis, or
    the shorter one, or none, depending on the room."""
    whole = max(end for _, end, _, _ in stretches) - stretches[0][0]
    room = width_points / font_points  # ems
    narrow = whole * _SHADE_MIN_POINTS / width_points
    shaded = [(begin, end - begin) for begin, end, _, _ in stretches[1::2] if end - begin >= narrow]
    for axis in axes:
        axis.broken_barh(shaded, (0, 1), transform=axis.get_xaxis_transform(), facecolor=theme.text, alpha=0.07, linewidth=0, zorder=0.5)
    for begin, end, label, short in stretches:
        words = label if (end - begin) * room >= 0.8 * len(label) * whole else short
        if words and whole and (end - begin) * room >= 0.6 * len(words) * whole:
            axes[0].text(
                (begin + end) / 2, 1.0, words, transform=axes[0].get_xaxis_transform(), ha="center", va="bottom",
                fontsize="x-small", color=theme.muted,
            )  # fmt: skip


def notes(axes: Sequence[Any], theme: Theme, marks: Sequence[tuple[float, str, bool]], width_points: float, font_points: float) -> None:
    """Draws a vertical line for each (x, text, restart), and writes the text at the top of the
    first axis, right or left of the line where there is room. Restarts get their place first."""
    low, high = axes[0].get_xlim()
    taken: list[tuple[float, float]] = []
    for x, text, restart in sorted(marks, key=lambda mark: (not mark[2], mark[0])):
        colour = theme.alert if restart else theme.muted
        for axis in axes:
            axis.axvline(x, color=colour, linestyle="-" if restart else (0, (1, 2)), linewidth=1.1 if restart else 0.9, zorder=1.5)
        words = cut(text, 32)
        wide = 0.45 * (len(words) + 2) * font_points / width_points * (high - low)
        for begin, end, side in ((x, x + wide, 1), (x - wide, x, -1)):
            if begin < low or end > high or any(begin < b and a < end for a, b in taken):
                continue
            taken.append((begin, end))
            axes[0].annotate(
                words, (x, 1), xycoords=axes[0].get_xaxis_transform(), xytext=(3 * side, -3), textcoords="offset points", va="top",
                ha="left" if side > 0 else "right", fontsize="x-small", color=colour,
                bbox={"facecolor": theme.background, "edgecolor": "none", "alpha": 0.75, "pad": 1},
            )  # fmt: skip
            break


def legend(axis: Any, theme: Theme, height_points: float, font_points: float, more: int = 0, given: Optional[tuple[list[Any], list[str]]] = None) -> None:
    """Draws the legend beside the axis, with as many names as fit; its last line gives the number
    of the others. `given`: the handles and labels of another axis."""
    handles, labels = given or axis.get_legend_handles_labels()
    fits = max(2, int(height_points / (1.35 * font_points)))
    left_out = more
    if len(handles) + (more > 0) > fits:
        left_out += len(handles) - (fits - 1)
        handles, labels = handles[: fits - 1], labels[: fits - 1]
    if left_out:
        handles.append(importlib.import_module("matplotlib.lines").Line2D([], [], linestyle=""))
        labels.append(f"… and {left_out:,} more")
    axis.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.005, 1), frameon=False, borderaxespad=0, fontsize="small", labelcolor=theme.text)
