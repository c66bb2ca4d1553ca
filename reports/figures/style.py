# SPDX-License-Identifier: Apache-2.0
"""One look for all figures: sizes of a paper's column, colours of Okabe and Ito, which colour-blind readers tell apart.

What is predicted is a line or a filled bar, what was measured a hollow marker: they differ in grey too, as do series (line
styles, markers) and parts (hatches). The corner names calibration, weakest provenance, date and version.
"""

import logging
import math
import textwrap

import matplotlib

logging.getLogger("matplotlib").setLevel(logging.ERROR)
matplotlib.use("Agg")

from matplotlib.figure import Figure  # noqa: E402  (the backend comes first)
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator  # noqa: E402

INK, PAPER, GREY = "#1a1a1c", "#fffffe", "#6a6a70"  # the page makes the first two follow light and dark
COLUMN, WIDE = 3.3, 6.9  # inches: one and two columns of a paper
SMALL, CORNER = 6.5, 5.2  # points

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK]
LINES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1))]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]

matplotlib.rcParams.update({
    "svg.hashsalt": "scapesim", "svg.fonttype": "none", "pdf.fonttype": 42, "font.family": "DejaVu Sans",
    "font.size": 7, "axes.titlesize": 7, "axes.labelsize": 7, "xtick.labelsize": SMALL, "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL, "legend.frameon": False, "legend.handlelength": 2.6, "legend.columnspacing": 1.2,
    "axes.grid": True, "grid.alpha": 0.3, "grid.linewidth": 0.5, "axes.axisbelow": True, "axes.linewidth": 0.6,
    "axes.spines.top": False, "axes.spines.right": False, "xtick.major.width": 0.6, "ytick.major.width": 0.6,
    "xtick.major.size": 2.5, "ytick.major.size": 2.5, "lines.linewidth": 1.3, "hatch.linewidth": 0.5,
    "text.color": INK, "axes.edgecolor": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
    "figure.facecolor": PAPER, "axes.facecolor": PAPER, "savefig.facecolor": PAPER})

HATCHES = ["", "/////", "-----", "xxxxx", "\\\\\\\\\\", "|||||", "+++++", "//"]  # of lines only: dots make large files


def plain(name):
    """A name as text that is drawn as it is: a dollar begins no formula."""
    return str(name).replace("$", r"\$")


def wrapped(name, width):
    return plain("\n".join(textwrap.wrap(str(name), width, break_on_hyphens=False)) or str(name))


def line_style(index):
    """Of a predicted curve."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": LINES[index % len(LINES)], "marker": ".", "markersize": 4}


def hollow_style(index):
    """Of measured points."""
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)], "linestyle": "none",
            "markerfacecolor": PAPER, "markersize": 4.2, "markeredgewidth": 1, "zorder": 3}


def legend_line(index, measured):
    style = line_style(index)
    if measured:
        style.update({key: value for key, value in hollow_style(index).items() if key.startswith("marker")})
    return Line2D([], [], **style)


def part_style(index, colour=None):
    """Of a filled part in a stack."""
    return {"facecolor": colour or COLOURS[index % len(COLOURS)], "hatch": HATCHES[index % len(HATCHES)],
            "edgecolor": PAPER, "linewidth": 0.3}


def new_figure(width=COLUMN, height=2.3, rows=1, columns=1, **options):
    """A figure and its axes, as an array of rows."""
    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def shown_of(shown, total, what, kept=""):
    """A line for the figure that leaves some out: "24 of 60 exchanges shown, the longest"; None where all are in."""
    return None if shown >= total else f"{shown} of {total} {what} shown" + (f", {kept}" if kept else "")


def add_note(axes, *notes):
    """The notes that are not None above the axes, under what stands there already."""
    lines = [*([axes.get_title()] if axes.get_title() else []), *[wrapped(note, 60) for note in notes if note]]
    axes.set_title("\n".join(lines))


def grey_label(axes, x, y, text, **options):
    axes.text(x, y, plain(text), fontsize=SMALL - 0.5, color=INK, **options)


def short(value):
    """A number for an axis: 0.002, 20, 16384, but 1e6 and 2e-5."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.12g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def plain_numbers(axis, ticks, text=short):
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))


def bytes_axis(axes):
    """Log axis of sizes with ticks at powers of two."""
    low, high = axes.get_xlim()
    step = 1 + int(math.log2(high / low) / 8)
    units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    exponents = [e for e in range(0, 60, step) if low <= 2.0 ** e <= high]
    plain_numbers(axes.xaxis, [2.0 ** e for e in exponents],
                  lambda size: f"{size / 1024 ** (int(math.log2(size)) // 10):g} {units[int(math.log2(size)) // 10]}")


def gpu_axis(axes, counts):
    """Log axis with a tick at every count; finish() drops labels without room."""
    axes.set_xscale("log")
    margin = (counts[-1] / counts[0]) ** 0.06 if len(counts) > 1 else 2
    axes.set_xlim(counts[0] / margin, counts[-1] * margin)
    plain_numbers(axes.xaxis, counts, lambda count: f"{count:.12g}")
    axes.set_xlabel("GPUs")


def log_axis(axes, axis="y", least=3):
    """Plain numbers at 1, 2 and 5 of every decade (1 alone over many decades); spans a factor of `least` at least."""
    getattr(axes, f"set_{axis}scale")("log")
    low, high = getattr(axes, f"get_{axis}lim")()
    widen = max(1, (least * low / high) ** 0.5)
    low, high = low / widen, high * widen
    getattr(axes, f"set_{axis}lim")(low, high)
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8)):
        ticks = [round(m * 10.0 ** e, 15 - e) for e in range(-15, 25) for m in steps if low <= m * 10.0 ** e <= high]
        if len(ticks) >= 3:
            break
    else:
        ticks = [tick for tick in MaxNLocator(4).tick_values(low, high) if low <= tick <= high]
    while len(ticks) > 8:
        ticks = ticks[::2]
    plain_numbers(axes.xaxis if axis == "x" else axes.yaxis, ticks)


def legend_below(figure, handles, labels):
    """Remembers a legend that finish() puts under the axes, in as many columns as fit."""
    figure.legend_below = (handles, [str(label) for label in labels])


def placed_legend(figure, bottom):
    """The legend at `bottom` (inches) in as many columns as fit; its height in inches."""
    handles, labels = figure.legend_below
    width = figure.get_figwidth() * 72 * 0.98
    labels = [wrapped(label, int(width / 4.4)) for label in labels]
    renderer = figure.canvas.get_renderer()
    for columns in range(min(4, len(handles)), 0, -1):
        legend = figure.legend(handles, [f"{i}" for i in range(len(handles))], loc="lower center", ncol=columns,
                               bbox_to_anchor=(0.5, bottom / figure.get_figheight()), borderaxespad=0, borderpad=0.2)
        for text, label in zip(legend.get_texts(), labels):  # a legend leaves out labels that begin with _
            text.set_text(label)
        box = legend.get_window_extent(renderer)
        if box.width <= 0.98 * figure.bbox.width or columns == 1:
            return box.height / figure.dpi
        legend.remove()
    return 0


def finish(figure, corner):
    """Legend and corner at the bottom, axes in the room above: nothing overlaps, nothing is cut."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    FigureCanvasAgg(figure)
    text = figure.text(0.995, 0.025 / figure.get_figheight(), wrapped(corner, int(figure.get_figwidth() * 72 / 3.1)), ha="right", va="bottom",
                       fontsize=CORNER, color=GREY, gid="corner")
    bottom = text.get_window_extent(figure.canvas.get_renderer()).height / figure.dpi + 0.06
    if getattr(figure, "legend_below", None):
        legend = placed_legend(figure, bottom)
        figure.set_figheight(figure.get_figheight() + max(0, legend - 0.2))  # a tall legend takes nothing from the axes
        text.set_y(0.025 / figure.get_figheight())
        for drawn in figure.legends:
            drawn.set_bbox_to_anchor((0.5, bottom / figure.get_figheight()), figure.transFigure)
        bottom += legend + 0.03
    for _ in range(2):  # fewer labels leave more room
        figure.tight_layout(pad=0.35, w_pad=1.0, h_pad=0.9, rect=(0, bottom / figure.get_figheight(), 1, 1))
        thin_labels(figure)
    return figure


def thin_labels(figure):
    """Drops tick labels that would touch the one before."""
    renderer = figure.canvas.get_renderer()
    for axes in filter(lambda one: one.get_visible(), figure.axes):
        for axis, near, far in ((axes.xaxis, "x0", "x1"), (axes.yaxis, "y0", "y1")):
            low, high = sorted(axis.get_view_interval())
            labels = [(tick, next((label for label in (tick.label1, tick.label2) if label.get_visible() and label.get_text()), None))
                      for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            boxes = sorted(((label.get_window_extent(renderer), (tick, label)) for tick, label in labels if label),
                           key=lambda pair: getattr(pair[0], near))
            kept = []
            for box, pair in boxes:
                if not kept or getattr(box, near) >= getattr(kept[-1][0], far) + 1.5:
                    kept.append((box, pair))
            if len(kept) < len(boxes):
                axis.set_ticks([tick.get_loc() for _, (tick, _) in kept], [label.get_text() for _, (_, label) in kept])


__all__ = [name for name in dir() if not name.startswith("_")]
