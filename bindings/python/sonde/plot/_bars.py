"""Draws spans as bars."""

import math
from collections.abc import Sequence
from typing import Any

from . import _data, _draw
from ._data import Run
from ._figure import library
from ._picture import Picture

_NAMED_SPANS = 7  # number of names with a colour of their own; those with the largest total times

Lane = tuple[str, list[tuple[int, int, dict[str, Any]]]]  # a label, and (row, run, span)


def lanes_of(found: Sequence[tuple[int, dict[str, Any]]], runs: Sequence[Run]) -> tuple[list[Lane], int]:
    """Returns the lanes, and the total number of rows. Each host, and each rank or worker of it,
    has as many rows as its spans overlap; a span is above the spans within it."""
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for number, span in found:
        tags = span["tags"]
        own = [f"{key} {tags[key]}" for key in ("rank", "worker", "gpu", "pid") if key in tags][:1]
        groups.setdefault((number, " ".join([span["node"] or tags.get("host", ""), *own])), []).append(span)
    lanes: list[Lane] = []
    row = 0
    for (number, label), members in sorted(groups.items(), key=lambda item: (item[0][0], _data.natural(item[0][1]))):
        free: list[int] = []  # time from which each row of the lane is free again
        placed = []
        for span in sorted(members, key=lambda one: (int(one["start_ns"]), -int(one.get("end_ns", runs[number].end_ns)))):
            end = int(span.get("end_ns", runs[number].end_ns))
            at = next((at for at, free_from in enumerate(free) if free_from <= int(span["start_ns"])), len(free))
            free[at:at + 1] = [end]  # fmt: skip
            placed.append((row + at, number, span))
        lanes.append((f"{runs[number].name}: {label}" if len(runs) > 1 else label, placed))
        row += len(free)
    return lanes, row


def draw_bars(picture: Picture, axis: Any, lanes: Sequence[Lane], rows: int) -> None:
    collections, patches = library("matplotlib.collections"), library("matplotlib.patches")
    theme = picture.theme
    total: dict[str, float] = {}
    placed_in: dict[tuple[int, str], bool] = {}
    bars = []
    for _, placed in lanes:
        for row, number, span in placed:
            begin, end = (float(x) for x in picture.time([int(span["start_ns"]), int(span.get("end_ns", picture.runs[number].end_ns))], number))
            # In each row, every second bar of a name is paler, so that readers can distinguish
            # neighbours.
            odd = placed_in[row, span["name"]] = not placed_in.get((row, span["name"]), True)
            bars.append((row, begin, end, span, odd))
            total[span["name"]] = total.get(span["name"], 0.0) + end - begin
    low, high = min(bar[1] for bar in bars), max(bar[2] for bar in bars)
    margin = (high - low) / 100 or picture.time.of_seconds(0.5)
    order = sorted(total, key=lambda name: -total[name])
    colours = {name: theme.lines[at] if at < _NAMED_SPANS else theme.muted for at, name in enumerate(order)}
    paler = {name: _draw.mixed(colour, theme.background, 0.68) for name, colour in colours.items()}
    row_points = picture.height_points(axis) / max(1, rows)
    scale_points = picture.width_points / (high - low + 2 * margin)
    kinds: dict[tuple[str, bool, bool], list[list[tuple[float, float]]]] = {}
    for row, begin, end, span, odd in bars:
        is_open = "end_ns" not in span or "unfinished" in span["tags"]
        kinds.setdefault((span["name"], is_open, odd), []).append([(begin, row - 0.42), (end, row - 0.42), (end, row + 0.42), (begin, row + 0.42)])
    for (name, is_open, odd), verts in kinds.items():
        colour = (paler if odd else colours)[name]
        axis.add_collection(
            collections.PolyCollection(
                verts, facecolors=colour, edgecolors=colour, linewidths=0.3, alpha=0.45 if is_open else None, hatch="//" if is_open else None, rasterized=len(bars) > 5000
            )
        )
    for row, begin, end, span, odd in bars:
        words = " ".join([span["name"], *[v for k, v in span["tags"].items() if k not in ("host", "rank", "worker", "gpu", "pid", "unfinished")]])
        words = words if len(words) * 0.5 * picture.font_points < (end - begin) * scale_points else str(span["name"])
        if row_points > picture.font_points and len(words) * 0.5 * picture.font_points < (end - begin) * scale_points:
            colour = _draw.readable_on((paler if odd else colours)[span["name"]])
            axis.text((begin + end) / 2, row, words, ha="center", va="center_baseline", fontsize="x-small", color=colour, clip_on=True)
    axis.set_xlim(low - margin, high + margin)
    axis.set_ylim(rows - 0.5, -0.5)
    firsts = [(placed[0][0] + max(row for row, _, _ in placed)) / 2 for _, placed in lanes]
    every = max(1, math.ceil(len(lanes) * 1.3 * 0.8 * picture.font_points / picture.height_points(axis)))
    axis.set_yticks(firsts[::every], [_draw.cut(label, 30) for label, _ in lanes[::every]], fontsize="small")
    axis.tick_params(axis="y", length=0)
    for _, placed in lanes[1:]:
        axis.axhline(min(row for row, _, _ in placed) - 0.5, color=theme.grid, linewidth=0.6, zorder=0.4)
    if len(order) > 1:
        shown = order[:_NAMED_SPANS]
        handles = [patches.Patch(color=colours[name], label=_draw.cut(name, 28)) for name in shown]
        if len(order) > len(shown):
            handles.append(patches.Patch(color=theme.muted, label=f"{len(order) - len(shown):,} others"))
        axis.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.005, 1), frameon=False, borderaxespad=0, fontsize="small", labelcolor=theme.text)
