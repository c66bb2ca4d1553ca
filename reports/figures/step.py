# SPDX-License-Identifier: Apache-2.0
"""Figures of steps: where the time goes, what is waited for, what fills the memory."""

from figures.results import label_of, runs_of, series_of
from figures.style import (COLUMN, COLOURS, INK, PAPER, Line2D, Patch, add_note, grey_label, legend_below, new_figure, part_style,
                           shown_of, wrapped)

PARTS = [  # key of breakdown_s, its name, colour
    ("compute", "compute", "#0072B2"), ("optimizer", "optimizer", "#56B4E9"),
    ("exposed_communication", "exposed communication", "#D55E00"), ("copy", "copy", "#E69F00"), ("host", "host", "#999999"),
    ("bubble", "bubble", "#F0E442")]
MEMORY = [  # key of memory_B, its name, colour
    ("parameters", "parameters", "#0072B2"), ("gradients", "gradients", "#D55E00"), ("optimizer", "optimizer", "#009E73"),
    ("strategy", "strategy", "#CC79A7"), ("activations", "activations", "#E69F00"), ("temporary", "temporary", "#56B4E9"),
    ("context", "CUDA, NCCL", "#999999")]
GIB = 2 ** 30
MOST_EXCHANGES = 24  # rows of a figure: of more the longest


def facets(document, draw_bar, unit_width=0.72):
    """One panel per series with a bar per GPU count; or one panel of horizontal bars when every series has one run.

    draw_bar(run) lists (part index, length). Returns figure, [(axes, runs)], whether bars are horizontal, used parts.
    """
    series = series_of(document)
    used, panels = set(), []
    flat = all(len(runs) == 1 for runs in series.values())
    if flat:
        runs = [runs[0] for runs in series.values()]
        figure, cells = new_figure(COLUMN, 0.95 + 0.3 * len(runs))
        panels.append((cells[0][0], runs))
    else:
        columns = min(2, len(series))
        rows = -(-len(series) // columns)
        figure, cells = new_figure(COLUMN, 0.5 + 1.45 * rows, rows, columns, sharey=True)
        for axes in cells.flatten()[len(series):]:
            axes.set_visible(False)
        panels = list(zip(cells.flatten(), series.values()))
    for axes, runs in panels:
        for place, run in enumerate(runs):
            base = 0.0
            for index, length, style in draw_bar(run):
                if length > 0:
                    used.add(index)
                    bar = axes.barh if flat else axes.bar
                    bar(place, length, unit_width, base, gid=f"part {index}", **style)
                base += length
    return figure, panels, flat, used


def label_bars(axes, runs, flat, what):
    """Names of the bars: series beside, or GPU counts below."""
    if flat:
        axes.set_yticks(range(len(runs)), [wrapped(label_of(run), 20) for run in runs])
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(what)
    else:
        middle, half = (len(runs) - 1) / 2, max(3.5, len(runs)) / 2 + 0.1
        axes.set_xlim(middle - half, middle + half)
        axes.set_xticks(range(len(runs)), [str(run["gpus"]) for run in runs])
        axes.grid(axis="x", visible=False)
        axes.set_title(wrapped(label_of(runs[0]), 26))


def label_edges(panels, flat, what):
    """Axis names on the outer panels only."""
    if flat:
        return
    for i, (axes, _) in enumerate(panels):
        if i % 2 == 0:
            axes.set_ylabel(what)
        if i >= len(panels) - 2:
            axes.set_xlabel("GPUs")


def breakdown(document):
    """Share of each part in the step; its time above."""
    def parts(run):
        return [(i, 100 * run["breakdown_s"][key] / run["step_time_s"], part_style(i, colour))
                for i, (key, _, colour) in enumerate(PARTS)]
    figure, panels, flat, used = facets(document, parts)
    what = "share of the step (%)"
    for axes, runs in panels:
        label_bars(axes, runs, flat, what)
        crowded = len(runs) > 5
        for place, run in enumerate(runs):
            text = f"{run['step_time_s']:.3g}" + (" s" if flat or len(runs) < 5 else "")
            if flat:
                grey_label(axes, 102, place, text, ha="left", va="center")
            elif not crowded:
                grey_label(axes, place, 102, text, ha="center", va="bottom")
        (axes.set_xlim if flat else axes.set_ylim)(0, 118 if flat else 114)
        (axes.set_xticks if flat else axes.set_yticks)(range(0, 101, 20 if not flat else 25))
    label_edges(panels, flat, what)
    legend_below(figure, [Patch(**part_style(i, PARTS[i][2])) for i in sorted(used)], [PARTS[i][1] for i in sorted(used)])
    return figure


def memory(document):
    """Memory of the fullest GPU by kind; the line is what it has."""
    def parts(run):
        return [(i, run["memory_B"][key] / GIB, part_style(i, colour)) for i, (key, _, colour) in enumerate(MEMORY)]
    figure, panels, flat, used = facets(document, parts)
    what = "memory of the fullest GPU (GiB)" if flat else "GiB of the fullest GPU"
    top = 0
    for axes, runs in panels:
        label_bars(axes, runs, flat, what)
        capacities = sorted({run["memory_B"]["capacity"] / GIB for run in runs})
        for capacity in capacities:
            (axes.axvline if flat else axes.axhline)(capacity, color=INK, linewidth=1, linestyle="--", gid="capacity")
        top = max([top, *capacities, *[patch.get_x() + patch.get_width() if flat else patch.get_y() + patch.get_height()
                                       for patch in axes.patches]])
    for axes, _ in panels:
        (axes.set_xlim if flat else axes.set_ylim)(0, 1.06 * top)
    label_edges(panels, flat, what)
    handles = [Patch(**part_style(i, MEMORY[i][2])) for i in sorted(used)]
    legend_below(figure, [*handles, Line2D([], [], color=INK, linewidth=1, linestyle="--")],
                 [*[MEMORY[i][1] for i in sorted(used)], "GPU memory"])
    return figure


def largest_runs(document):
    """Of every series the run on most GPUs."""
    return [runs[-1] for runs in series_of(document).values()]


def communication(document):
    """Every exchange of a step: how long it takes, and how long the compute stream waits for it."""
    rows = [(run, row) for run in largest_runs(document) for row in run["communication"] if row["time_s"] > 0]
    if not rows:
        return None
    total = len(rows)
    kept = sorted(sorted(range(total), key=lambda i: -rows[i][1]["time_s"])[:MOST_EXCHANGES])
    rows = [rows[i] for i in kept]
    several = len(largest_runs(document)) > 1
    figure, cells = new_figure(COLUMN, 0.95 + 0.26 * len(rows))
    axes = cells[0][0]
    scale, unit = (1, "s") if max(row["time_s"] for _, row in rows) >= 0.5 else (1e3, "ms")
    names = []
    for place, (run, row) in enumerate(rows):
        axes.barh(place, scale * row["time_s"], 0.72, facecolor="#BFD9EA", edgecolor=COLOURS[0], linewidth=0.5, gid="time")
        axes.barh(place, scale * row["exposed_s"], 0.4, facecolor=COLOURS[1], edgecolor=PAPER, hatch="-----", linewidth=0.3,
                  gid="exposed")
        calls = f", {row['count']}x" if row["count"] > 1 else ""
        names.append(wrapped((f"{label_of(run)}: " if several else "") + row["name"] + calls, 30))
    axes.set_yticks(range(len(rows)), names)
    for label in axes.get_yticklabels():
        label.set_fontsize(5.8)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1.03 * scale * max(row["time_s"] for _, row in rows))
    axes.set_xlabel(f"time per step ({unit})")
    add_note(axes, shown_of(len(rows), total, "exchanges", "the longest"))
    legend_below(figure, [Patch(facecolor="#BFD9EA", edgecolor=COLOURS[0], linewidth=0.5),
                          Patch(facecolor=COLOURS[1], edgecolor=PAPER, hatch="-----", linewidth=0.3)],
                 ["all calls", "of it exposed"])
    return figure


def title_of(document):
    runs = runs_of(document)
    if not runs:
        return "the plan does not fit"
    gpus = sorted({run["gpus"] for run in runs})
    return f"{runs[0]['scenario']['name']} on {', '.join(map(str, gpus))} GPUs"
