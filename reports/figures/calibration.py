# SPDX-License-Identifier: Apache-2.0
"""Figures of calibrations: scapesim.profile/1."""

from figures.style import (COLOURS, COLUMN, INK, LINES, MARKERS, Line2D, Patch, bytes_axis, legend_below, log_axis, new_figure,
                           part_style, plain, wrapped)

KINDS = ["measured", "imported", "published", "datasheet", "assumed"]
COLOUR = {"measured": "#0072B2", "imported": "#56B4E9", "published": "#009E73", "datasheet": "#E69F00", "assumed": "#D55E00"}


def groups_of(document):
    """{part of the profile: [provenance of each number and curve]}."""
    groups = {}
    for table in ("numbers", "curves"):
        for key, entry in document[table].items():
            groups.setdefault(key.split(".")[0], []).append(entry["provenance"])
    return dict(sorted(groups.items()))


def coverage(document):
    """How many numbers of each part are measured, imported, published, from a data sheet, assumed."""
    groups = groups_of(document)
    figure, cells = new_figure(COLUMN, 0.95 + 0.22 * len(groups))
    axes = cells[0][0]
    for place, kinds in enumerate(groups.values()):
        base = 0
        for index, kind in enumerate(KINDS):
            count = kinds.count(kind)
            if count:
                axes.barh(place, count, 0.72, base, gid=kind, **part_style(index, COLOUR[kind]))
            base += count
    axes.set_yticks(range(len(groups)), groups)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("numbers and curves")
    used = [kind for kind in KINDS if any(kind in kinds for kinds in groups.values())]
    legend_below(figure, [Patch(**part_style(KINDS.index(kind), COLOUR[kind])) for kind in used], used)
    return figure


def ranges(document):
    """90 % range of every number relative to its value, widest first."""
    rows = [(key, entry) for key, entry in document["numbers"].items() if entry["value"] > 0 and entry["high"] > entry["low"] > 0]
    rows.sort(key=lambda row: row[1]["low"] / row[1]["high"])
    rows = rows[:24]
    if not rows:
        return None
    figure, cells = new_figure(COLUMN, 0.95 + 0.145 * len(rows))
    axes = cells[0][0]
    for place, (_, entry) in enumerate(rows):
        value, kind = entry["value"], entry["provenance"]
        axes.plot([entry["low"] / value, entry["high"] / value], [place, place], color=COLOUR[kind], linewidth=1.6, gid="range",
                  marker=MARKERS[KINDS.index(kind)], markersize=3)
        axes.plot(1, place, marker="|", color=INK, markersize=6)
    log_axis(axes, "x")
    axes.set_yticks(range(len(rows)), [key for key, _ in rows])
    for label in axes.get_yticklabels():
        label.set_fontsize(5.6)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("90 % range over value")
    used = [kind for kind in KINDS if any(entry["provenance"] == kind for _, entry in rows)]
    legend_below(figure, [Line2D([], [], color=COLOUR[kind], linewidth=1.6, marker=MARKERS[KINDS.index(kind)], markersize=3)
                          for kind in used], used)
    return figure


MOST_CURVES = 7


def curves(document):
    """The curves of the profile over their sampled range, with their 90 % range; a panel per kind of x axis."""
    rows = [(key, curve) for key, curve in document["curves"].items() if len(curve["points"]) > 1]
    kinds = list(dict.fromkeys((curve["x"], curve["y"]) for _, curve in rows))[:3]
    if not kinds:
        return None
    figure, cells = new_figure(COLUMN, 0.3 + 1.75 * len(kinds), len(kinds), 1)
    names = []
    for (axes,), kind in zip(cells, kinds):
        for key, curve in [(key, curve) for key, curve in rows if (curve["x"], curve["y"]) == kind][:MOST_CURVES - len(names)]:
            i, (x, y) = len(names), zip(*curve["points"])
            axes.plot(x, y, color=COLOURS[i], linestyle=LINES[i], marker=".", markersize=3, gid=f"curve {i}")
            axes.fill_between(x, [v * curve["low_factor"] for v in y], [v * curve["high_factor"] for v in y], color=COLOURS[i],
                              alpha=0.12, linewidth=0)
            names.append(key)
        axes.set_xscale("log")
        if kind[0].endswith("_B"):
            bytes_axis(axes)
        else:
            log_axis(axes, "x")
        axes.set_ylim(0, None)
        axes.set_xlabel(plain(kind[0].removesuffix("_B").replace("_", " ")))
        axes.set_ylabel(wrapped(kind[1].replace("_", " "), 26))
    legend_below(figure, [Line2D([], [], color=COLOURS[i], linestyle=LINES[i]) for i in range(len(names))], names)
    return figure


def title_of(document):
    return f"calibration {document['id']}"
