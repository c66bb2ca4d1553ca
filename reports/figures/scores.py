# SPDX-License-Identifier: Apache-2.0
"""Figures of predictions against measurements: scapesim.validation/1, scores/1, explain/1."""

from figures.style import (COLOURS, COLUMN, INK, MARKERS, PAPER, Line2D, Patch, hollow_style, legend_below, log_axis,
                           new_figure, part_style, plain, wrapped)

UNITS = {"step_time_s": "step time (s)", "time_s": "time (s)", "computation_s": "computation (s)",
         "communication_s": "communication (s)", "memory_B": "memory (B)", "tokens_per_s": "tokens per s",
         "tokens_per_s_per_gpu": "tokens per s and GPU", "mfu": "MFU"}


def groups_of(document):
    """{group: rows}: by source or method, most rows first, with a prediction."""
    rows = [row for row in document["rows"] if row["predicted"] is not None and row["measured"]]
    name = "source" if document["schema"].startswith("scapesim.scores") else "series"
    groups = {}
    for row in rows:
        key = row[name]
        if name == "series":  # "calibrated 1 MiB", "scape d=0.01": the first word tells the method
            key = key.split()[0]
        groups.setdefault(key or "rows", []).append(row)
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    return dict(ordered[:7])


def main_metric(document):
    """The metric of most rows, step times first among equals."""
    counts = {}
    for row in document["rows"]:
        counts[row["metric"]] = counts.get(row["metric"], 0) + 1
    return max(counts, key=lambda metric: (counts[metric], metric == "step_time_s")) if counts else None


def legend(figure, groups):
    handles = [Line2D([], [], **{**hollow_style(i), "markersize": 4}) for i in range(len(groups))]
    legend_below(figure, handles, [f"{name} ({len(rows)})" for name, rows in groups.items()])


def parity(document):
    """Predicted over measured; on the diagonal they agree."""
    metric = main_metric(document)
    groups = {name: [row for row in rows if row["metric"] == metric] for name, rows in groups_of(document).items()}
    groups = {name: rows for name, rows in groups.items() if rows}
    if not groups:
        return None
    figure, cells = new_figure(COLUMN, 3.0)
    axes = cells[0][0]
    for i, rows in enumerate(groups.values()):
        axes.plot([row["measured"] for row in rows], [row["predicted"] for row in rows], gid=f"rows {i}",
                  **{**hollow_style(i), "markersize": 3, "markeredgewidth": 0.7, "markerfacecolor": "none"})
    axes.set_xscale("log")
    axes.set_yscale("log")
    low = min(axes.get_xlim()[0], axes.get_ylim()[0])
    high = max(axes.get_xlim()[1], axes.get_ylim()[1])
    for axis in "xy":
        getattr(axes, f"set_{axis}lim")(low, high)
        log_axis(axes, axis)
    axes.plot([low, high], [low, high], color=INK, linewidth=0.8)
    for factor in (0.8, 1.25):
        axes.plot([low, high], [low * factor, high * factor], color=INK, linewidth=0.6, linestyle=":")
    axes.set_xlabel(f"measured {UNITS.get(metric, metric)}")
    axes.set_ylabel(f"predicted {UNITS.get(metric, metric)}")
    axes.set_title("line: equal; dotted: 25 % off")
    legend(figure, groups)
    return figure


def errors(document):
    """Signed error of every row, group by group; the bar is the median of the group where the result has it."""
    groups = groups_of(document)
    rows_shown = [row for rows in groups.values() for row in rows if row["error"] is not None]
    if not rows_shown:
        return None
    figure, cells = new_figure(COLUMN, 0.95 + 0.33 * len(groups))
    axes = cells[0][0]
    bias = {group["name"]: group["bias"] for group in document["groups"] if group.get("by") == "source"}
    limit = max(5, min(120, 1.1 * max(abs(100 * row["error"]) for row in rows_shown)))
    for place, (name, rows) in enumerate(groups.items()):
        values = [100 * row["error"] for row in rows if row["error"] is not None]
        # Spread along the lane by position, so that equal errors stay apart.
        offsets = [place + 0.26 * ((k * 7) % 11 - 5) / 5 for k in range(len(values))]
        axes.plot(values, offsets, gid=f"rows {place}", linestyle="none", marker=MARKERS[place % len(MARKERS)], markersize=2.6,
                  markerfacecolor="none", markeredgewidth=0.6, color=COLOURS[place % len(COLOURS)])
        if bias.get(name) is not None:
            axes.plot([100 * bias[name]] * 2, [place - 0.38, place + 0.38], color=INK, linewidth=1.4, gid="bias")
    axes.axvline(0, color=INK, linewidth=0.7)
    axes.set_xlim(-limit, limit)
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.set_yticks(range(len(groups)), [wrapped(f"{name} ({len(rows)})", 26) for name, rows in groups.items()])
    for label in axes.get_yticklabels():
        label.set_fontsize(5.8)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("predicted against measured (%)")
    if bias:
        axes.set_title("bar: median error")
    return figure


def explained(document):
    """Parts of a measured step beside the predicted ones."""
    rows = [row for row in document["terms"] if row["predicted_s"] is not None or row["measured_s"] is not None]
    figure, cells = new_figure(COLUMN, 0.95 + 0.34 * len(rows))
    axes = cells[0][0]
    for place, row in enumerate(rows):
        if row["predicted_s"] is not None:
            axes.barh(place - 0.19, row["predicted_s"], 0.36, gid="predicted", **part_style(0))
        if row["measured_s"] is not None:
            axes.barh(place + 0.19, row["measured_s"], 0.36, gid="measured", facecolor=PAPER, edgecolor=COLOURS[1], linewidth=0.9)
    axes.set_yticks(range(len(rows)), [wrapped(row["name"], 26) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("time per step (s)")
    axes.set_title(plain(f"{document['scenario']}, {document['gpus']} GPUs"))
    legend_below(figure, [Patch(**part_style(0)), Patch(facecolor=PAPER, edgecolor=COLOURS[1], linewidth=0.9)],
                 ["predicted", "measured"])
    return figure


def title_of(document):
    if document["schema"].startswith("scapesim.explain"):
        return f"{document['scenario']} on {document['gpus']} GPUs, measured and predicted"
    return f"{document.get('name', document.get('suite'))}: predictions against measurements"
