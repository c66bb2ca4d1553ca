# SPDX-License-Identifier: Apache-2.0
"""Figures of one step in time, and of its kernels: results written with run --result."""

from figures.results import label_of, runs_of
from figures.style import (COLOURS, COLUMN, GREY, INK, PAPER, WIDE, Line2D, Patch, grey_label, legend_below, log_axis,
                           new_figure, part_style, plain, wrapped)

KINDS = [("compute", "#0072B2"), ("optimizer", "#56B4E9"), ("communication", "#D55E00"), ("copy", "#E69F00"),
         ("host", "#999999")]
MOST_LANES = 24  # of one figure


def timed(document):
    """Runs that hold a timeline."""
    return [run for run in runs_of(document) if run.get("timeline", {}).get("classes")]


def lanes_of(run):
    """(name, blocks) per stream that runs something; of many stages the compute streams only."""
    classes = run["timeline"]["classes"]
    several = len(classes) > 1
    lanes = [((f"{c['name']}: " if several else "") + stream["name"], stream["blocks"])
             for c in classes for stream in c["streams"]]
    if len(lanes) <= MOST_LANES:
        return lanes
    lanes = [(c["name"], stream["blocks"]) for c in classes for stream in c["streams"] if stream["name"] == "compute"]
    step = -(-len(lanes) // MOST_LANES)
    return lanes[::step]


def unit_for(seconds):
    return (1, "s") if seconds >= 2 else (1e3, "ms") if seconds >= 2e-3 else (1e6, "us")


def draw_lanes(axes, run, used):
    lanes, (scale, unit) = lanes_of(run), unit_for(run["timeline"]["step_s"])
    for place, (_, blocks) in enumerate(lanes):
        for index, (kind, colour) in enumerate(KINDS):
            mine = [block for block in blocks if block[2] == kind]
            if not mine:
                continue
            used.add(index)
            style = part_style(index, colour)
            axes.broken_barh([(scale * begin, scale * (end - begin)) for begin, end, *_ in mine], (place - 0.38, 0.76),
                             **{**style, "linewidth": 0.2 if len(mine) < 60 else 0}, gid=f"lane {place} {kind}")
    axes.set_yticks(range(len(lanes)), [wrapped(name, 24) for name, _ in lanes])
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    axes.set_xlim(0, scale * run["timeline"]["step_s"])
    axes.grid(axis="y", visible=False)
    axes.set_title(plain(f"{label_of(run)}, {run['gpus']} GPUs"))
    axes.set_xlabel(f"time since the step began ({unit})")


def gantt(document):
    """One steady step: what every stream runs when."""
    runs = timed(document)[:6]
    if not runs:
        return None
    lanes = [len(lanes_of(run)) for run in runs]
    from figures.style import Figure
    figure = Figure(figsize=(WIDE if max(lanes) > 8 else COLUMN, 0.3 + sum(0.62 + 0.17 * n for n in lanes)))
    cells = figure.subplots(len(runs), 1, squeeze=False, gridspec_kw={"height_ratios": [n + 1.2 for n in lanes]})
    used = set()
    for (axes,), run in zip(cells, runs):
        draw_lanes(axes, run, used)
    legend_below(figure, [Patch(**part_style(i, KINDS[i][1])) for i in sorted(used)], [KINDS[i][0] for i in sorted(used)])
    return figure


def activations(document):
    """Activations that a rank holds between forward and backward passes."""
    runs = [run for run in timed(document) if any(len(c.get("activations", [])) > 2 for c in run["timeline"]["classes"])]
    if not runs:
        return None
    run = runs[0]
    classes = run["timeline"]["classes"]
    shown = classes if len(classes) <= 5 else [classes[i * (len(classes) - 1) // 4] for i in range(5)]
    scale, unit = unit_for(run["timeline"]["step_s"])
    figure, cells = new_figure(COLUMN, 2.2)
    axes = cells[0][0]
    for i, one in enumerate(shown):
        x = [scale * t for t, _ in one["activations"]] + [scale * run["timeline"]["step_s"]]
        y = [held / 2 ** 30 for _, held in one["activations"]]
        axes.step(x, [*y, y[-1]], where="post", color=COLOURS[i], linewidth=0.9, linestyle=["-", "--", "-.", ":", "-"][i],
                  gid=f"class {i}")
    axes.set_xlim(0, scale * run["timeline"]["step_s"])
    axes.set_ylim(0, None)
    axes.set_xlabel(f"time since the step began ({unit})")
    axes.set_ylabel("activations held (GiB)")
    axes.set_title(plain(f"{label_of(run)}, {run['gpus']} GPUs"))
    if len(shown) > 1:
        legend_below(figure, [Line2D([], [], color=COLOURS[i], linestyle=["-", "--", "-.", ":", "-"][i])
                              for i in range(len(shown))], [one["name"] for one in shown])
    return figure


def links(document):
    """Mean use of links and copy engines over the step."""
    rows = [(run, row) for run in timed(document) for row in run["resources"]]
    if not rows:
        return None
    several = len(timed(document)) > 1
    figure, cells = new_figure(COLUMN, 0.95 + 0.22 * len(rows))
    axes = cells[0][0]
    for place, (_, row) in enumerate(rows):
        axes.barh(place, 100 * row["use"], 0.72, **part_style(0), gid="use")
        grey_label(axes, 101, place, f"{row['capacity_Bps'] / 1e9:.4g} GB/s", ha="left", va="center")
    axes.set_yticks(range(len(rows)), [wrapped((f"{label_of(run)}: " if several else "") + row["name"], 30) for run, row in rows])
    for label in axes.get_yticklabels():
        label.set_fontsize(5.8)
    axes.invert_yaxis()
    axes.set_xlim(0, 136)
    axes.set_xticks(range(0, 101, 25))
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("mean use over the step (%)")
    return figure


KERNELS = {"gemm": (0, "o"), "attention": (1, "s"), "pass": (2, "^")}


def roofline(document):
    """Kernels of a layer by arithmetic per byte, under the dense peak and the memory's bandwidth."""
    runs = [run for run in timed(document) if run.get("kernels")]
    if not runs:
        return None
    run = runs[0]
    rows = [row for row in run["kernels"] if row["flops"] > 0 and row["flops_per_s"]]
    peak, bandwidth = run["roofs"]["flops_per_s"], run["roofs"]["bytes_per_s"]
    figure, cells = new_figure(COLUMN, 2.5)
    axes = cells[0][0]
    used = set()
    for row in rows:
        index, marker = KERNELS[row["kind"]]
        used.add(row["kind"])
        share = row["total_s"] / max(r["total_s"] for r in rows)
        axes.plot(row["flops_per_byte"], row["flops_per_s"] / 1e12, marker=marker, color=COLOURS[index], alpha=0.85,
                  linestyle="none", markersize=3 + 4 * share ** 0.5, markeredgecolor=PAPER, markeredgewidth=0.4, gid=row["kind"])
    left, right = min(r["flops_per_byte"] for r in rows) / 2, max(r["flops_per_byte"] for r in rows) * 2
    ridge = peak / bandwidth
    left, right = min(left, ridge / 4), max(right, ridge * 4)
    axes.plot([left, ridge, right], [left * bandwidth / 1e12, peak / 1e12, peak / 1e12], color=INK, linewidth=1.1, gid="roof")
    axes.set_xlim(left, right)
    log_axis(axes, "x")
    log_axis(axes)
    axes.set_xlabel("arithmetic per byte (FLOP/B)")
    axes.set_ylabel("rate (TFLOP/s)")
    axes.set_title(plain(f"{label_of(run)}; larger: more time of the step"))
    legend_below(figure, [Line2D([], [], color=INK, linewidth=1.1), *[
        Line2D([], [], color=COLOURS[KERNELS[kind][0]], marker=KERNELS[kind][1], linestyle="none", markersize=4)
        for kind in KERNELS if kind in used]],
        [f"roof: {peak / 1e12:.4g} TFLOP/s, {bandwidth / 1e12:.3g} TB/s", *[kind for kind in KERNELS if kind in used]])
    return figure


__all__ = ["gantt", "activations", "links", "roofline", "GREY"]
