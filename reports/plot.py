#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws scapesim.scale/1 documents: step time and efficiency over GPUs, and where the step goes.

Reads the result file only. Colours are those of Okabe and Ito (distinct for colour-blind readers); line styles, markers
and hatches keep the figures readable in grey. The same input gives the same bytes: no dates are written.
"""

import argparse
import json
import logging
import os
import pathlib
import sys
import warnings

import matplotlib

logging.getLogger("matplotlib").setLevel(logging.ERROR)
matplotlib.use("Agg")
matplotlib.rcParams.update({
    "svg.hashsalt": "scapesim", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False})

from matplotlib import pyplot as plt  # noqa: E402  (the backend comes first)
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: E402

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
LINES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1))]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
PARTS = [  # key of breakdown_s, label, colour, hatch
    ("compute", "compute", "#0072B2", ""), ("optimizer", "optimizer", "#56B4E9", "///"),
    ("exposed_communication", "exposed communication", "#D55E00", "..."), ("copy", "copy", "#E69F00", "xxx"),
    ("host", "host", "#999999", "\\\\\\"), ("bubble", "bubble", "#F0E442", "ooo")]


def plain(name):
    """A name as text that is drawn as it is: a dollar begins no formula."""
    return name.replace("$", r"\$")


class BadResult(Exception):
    """The file holds no result that can be drawn."""


def load(path):
    """Points of the document as {series: [run, ...]}, counts ascending; and the document."""
    try:
        document = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadResult(f"{path}: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != "scapesim.scale/1":
        raise BadResult(f"{path}: not a scapesim.scale/1 document")
    series = {}
    for point in document["points"]:
        if "infeasible" not in point:
            series.setdefault(point.get("series", point["scenario"]["name"]), []).append(point)
    if not series:
        raise BadResult(f"{path}: no feasible point to draw")
    return document, {name: sorted(runs, key=lambda r: r["gpus"]) for name, runs in series.items()}


def measured_steps(document, name):
    """Measured (GPUs, step time) of a series, counts ascending."""
    return sorted((row["gpus"], row["measured"]) for row in document.get("against", [])
                  if row["series"] == name and row["metric"] == "step_time_s")


def efficiencies(points, weak, gpus0):
    """(GPUs, efficiency) of (GPUs, step time) against the one on gpus0; empty when there is none."""
    time0 = dict(points).get(gpus0)
    if time0 is None:
        return []
    return [(gpus, time0 / time * (1 if weak else gpus0 / gpus)) for gpus, time in points]


def provenance(document):
    runs = [point for point in document["points"] if "infeasible" not in point]
    rests = sorted({f"calibration {r['calibration']['id']}, weakest number: {r['calibration']['weakest_provenance']}"
                    for r in runs})
    infeasible = [f"{p.get('series', p['scenario']['name'])} on {p['gpus']}" for p in document["points"]
                  if "infeasible" in p]
    text = f"scapesim {runs[0]['version']}; " + "; ".join(rests)
    return text + (f"; infeasible: {', '.join(infeasible)}" if infeasible else "")


def gpu_axis(axes, counts):
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:g}"))
    axes.set_xlabel("GPUs")
    margin = 1.15 if len(counts) > 1 else 2
    axes.set_xlim(counts[0] / margin, counts[-1] * margin)


def time_axis(axes):
    """Log axis of at least a factor of 3, with plain numbers at 1, 2 and 5 of every decade."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    widen = max(1, (3 * low / high) ** 0.5)
    low, high = low / widen, high * widen
    axes.set_ylim(low, high)
    ticks = [m * 10.0 ** e for e in range(-7, 7) for m in (1, 2, 5) if low <= m * 10.0 ** e <= high]
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
    axes.set_ylabel("step time (s)")


def draw_scaling(document, series):
    weak = document.get("scaling") == "weak"
    figure, (times, shares) = plt.subplots(1, 2, figsize=(9, 4.4))
    handles, measured_any, interval_any = [], False, False
    for i, (name, runs) in enumerate(series.items()):
        style = {"color": COLOURS[i % len(COLOURS)], "linestyle": LINES[i % len(LINES)], "linewidth": 1.6,
                 "marker": ".", "markersize": 5}
        hollow = {"color": style["color"], "marker": MARKERS[i % len(MARKERS)], "linestyle": "none",
                  "markerfacecolor": "white", "markersize": 6, "markeredgewidth": 1.3, "zorder": 3}
        points = [(run["gpus"], run["step_time_s"]) for run in runs]
        times.plot(*zip(*points), **style)
        with_interval = [run for run in runs if run["step_time_low_s"] is not None]
        if with_interval:
            interval_any = True
            if len(with_interval) == 1:  # a band of one point has no width
                times.vlines(with_interval[0]["gpus"], with_interval[0]["step_time_low_s"],
                             with_interval[0]["step_time_high_s"], color=style["color"], alpha=0.3, linewidth=4)
            times.fill_between([r["gpus"] for r in with_interval], [r["step_time_low_s"] for r in with_interval],
                               [r["step_time_high_s"] for r in with_interval], color=style["color"], alpha=0.15,
                               linewidth=0)
        base = points[0][0]  # the smallest count that fits, also for what was measured
        shares.plot(*zip(*[(gpus, 100 * e) for gpus, e in efficiencies(points, weak, base)]), **style)
        measured = measured_steps(document, name)
        if measured:
            measured_any = True
            times.plot(*zip(*measured), **hollow)
            for gpus, efficiency in efficiencies(measured, weak, base):
                shares.plot(gpus, 100 * efficiency, **hollow)
        in_legend = {key: value for key, value in hollow.items() if key.startswith("marker")} if measured else {}
        handles.append(Line2D([], [], **{**style, **in_legend}))
    counts = sorted({run["gpus"] for runs in series.values() for run in runs})
    for axes in (times, shares):
        gpu_axis(axes, counts)
    time_axis(times)
    shares.set_ylabel(f"{'weak' if weak else 'strong'}-scaling efficiency (%)")
    shares.set_ylim(0, max(105, shares.get_ylim()[1]))
    key = "lines: predicted"
    key += ", band: 90 % interval" if interval_any else ""
    key += ", hollow markers: measured" if measured_any else ""
    figure.suptitle(f"{plain(document['points'][0]['scenario']['name'])}  ({key})", fontsize=10)
    columns = min(4, len(handles))
    rows = -(-len(handles) // columns)
    legend = figure.legend(handles, [str(i) for i in range(len(handles))], loc="lower center", ncol=columns,
                           frameon=False, handlelength=3.5, bbox_to_anchor=(0.5, 0.045))
    for text, name in zip(legend.get_texts(), series):  # a legend leaves out labels that begin with _
        text.set_text(plain(name))
    return figure, 0.07 + 0.055 * rows


def draw_breakdown(document, series):
    columns = min(2, len(series))
    rows = -(-len(series) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(max(6, 4.5 * columns), 2.7 * rows + 1), sharey=True, squeeze=False)
    cells = grid.flatten()
    for axes in cells[len(series):]:
        axes.set_visible(False)
    used = set()
    for axes, (name, runs) in zip(cells, series.items()):
        base = [0.0] * len(runs)
        for key, _, colour, hatch in PARTS:
            heights = [100 * run["breakdown_s"][key] / run["step_time_s"] for run in runs]
            if any(height > 0.05 for height in heights):
                used.add(key)
                axes.bar(range(len(runs)), heights, bottom=base, color=colour, hatch=hatch, edgecolor="white",
                         linewidth=0.4, width=0.72)
            base = [b + h for b, h in zip(base, heights)]
        for i, run in enumerate(runs):
            axes.text(i, 101, f"{run['step_time_s']:.3g} s", ha="center", va="bottom", fontsize=8)
        middle, half = (len(runs) - 1) / 2, max(4, len(runs)) / 2
        axes.set_xlim(middle - half, middle + half)
        axes.set_xticks(range(len(runs)), [str(run["gpus"]) for run in runs])
        axes.set_ylim(0, 112)
        axes.set_yticks(range(0, 101, 20))
        axes.set_title(plain(name), fontsize=9)
        axes.grid(axis="x", visible=False)
        axes.set_xlabel("GPUs")
    for row in grid:
        row[0].set_ylabel("share of the step (%)")
    handles = [Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=label)
               for key, label, colour, hatch in PARTS if key in used]
    figure.suptitle(f"{plain(document['points'][0]['scenario']['name'])}: where the step goes (above: its time)", fontsize=10)
    figure.legend(handles=handles, loc="lower center", ncol=min(3, len(handles)), frameon=False,
                  bbox_to_anchor=(0.5, 0.18 / figure.get_figheight()))
    legend_rows = -(-len(handles) // 3)
    return figure, (0.3 + 0.22 * legend_rows) / figure.get_figheight()


def save(figure, bottom, document, path):
    """Writes the whole figure or leaves what was there."""
    figure.text(0.995, 0.012, plain(provenance(document)), ha="right", va="bottom", fontsize=6.5, color="#444444")
    figure.tight_layout(rect=(0, bottom, 1, 1))
    kind = path.suffix[1:].lower()
    metadata = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}[kind]
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        figure.savefig(temporary, format=kind, dpi=150, metadata=metadata)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
        plt.close(figure)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result", help="file with the output of scapesim scale --json")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path,
                        help="figure, .png, .pdf or .svg; the breakdown goes to NAME-breakdown beside it")
    options = parser.parse_args(arguments)
    if options.output.suffix.lower() not in (".png", ".pdf", ".svg"):
        parser.error("the output ends with .png, .pdf or .svg")
    second = options.output.with_name(options.output.stem + "-breakdown" + options.output.suffix)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            document, series = load(options.result)
            save(*draw_scaling(document, series), document, options.output)
            save(*draw_breakdown(document, series), document, second)
    except BadResult as error:
        print(f"plot: {error}", file=sys.stderr)
        return 2
    except Exception as error:  # whatever a library does, it is one line
        reason = " ".join(str(error).split())
        print(f"plot: {type(error).__name__}: {reason}", file=sys.stderr)
        return 1
    if any("missing from" in str(one.message) for one in told):
        print("warning: the font of the figure lacks characters of some names")
    print(f"drawn: {options.output}, {second}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
