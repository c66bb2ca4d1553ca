# SPDX-License-Identifier: Apache-2.0
"""What must hold for every picture: drawn, whole and legible. Needs the Python with matplotlib of $PYTHON."""

import itertools
import os
import sys

sys.path.insert(0, os.path.abspath("reports"))
sys.path.insert(0, os.path.abspath("tests/cli"))

from figures import catalogue, provenance, results, style  # noqa: E402

import numpy  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402

TOLERANCE = 1.0  # pixel, of a glyph's antialiased edge
SMALLEST = 5.0  # points, legible at column width


def drawn(row, document, date="2026-01-31"):
    """The finished figure of a catalogue row, or None."""
    figure = row.draw(document)
    return figure and style.finish(figure, provenance.corner(document, date))


def row(name):
    return next(row for row in catalogue.ROWS if row.name == name)


def result(document, name="r.json"):
    return results.checked(name, document)


def texts_of(figure):
    """Every text that shows, tick labels within the axes' limits only."""
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * max(abs(low), abs(high))
            for ticks in (axis.get_major_ticks(), axis.get_minor_ticks()):
                for tick in ticks:
                    if not axes.get_visible() or not low - slack <= tick.get_loc() <= high + slack:
                        hidden.update({tick.label1, tick.label2})
        if not axes.get_visible():
            hidden.update(axes.findobj(match=style.matplotlib.text.Text))
    shown = [text for text in figure.findobj(match=style.matplotlib.text.Text)
             if text.get_visible() and text.get_text().strip() and text not in hidden]
    return list(dict.fromkeys(shown))


def faults(figure):
    """What is wrong with the look of a figure: one line each."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer, width, height = canvas.get_renderer(), figure.bbox.width, figure.bbox.height
    found = []
    pixels = numpy.asarray(canvas.buffer_rgba())[..., :3].astype(int)
    inked = (abs(pixels - pixels[0, 0]).sum(axis=2) > 60).mean()
    if inked < 0.01:
        found.append(f"blank: {100 * inked:.2f} % of the picture is inked")
    boxes = [(text, text.get_window_extent(renderer)) for text in texts_of(figure)]
    for text, box in boxes:
        if box.x0 < -TOLERANCE or box.y0 < -TOLERANCE or box.x1 > width + TOLERANCE or box.y1 > height + TOLERANCE:
            found.append(f"cut: {text.get_text()!r} at {box.extents.round(1)} of {width:.0f} x {height:.0f}")
        if text.get_fontsize() < SMALLEST:
            found.append(f"small: {text.get_text()!r} in {text.get_fontsize()} points")
    for (a, box_a), (b, box_b) in itertools.combinations(boxes, 2):
        if (min(box_a.x1, box_b.x1) - max(box_a.x0, box_b.x0) > TOLERANCE
                and min(box_a.y1, box_b.y1) - max(box_a.y0, box_b.y0) > TOLERANCE):
            found.append(f"overlap: {a.get_text()!r} and {b.get_text()!r}")
    return found


def points_of(figure, gid, axes=0):
    """(x, y) of all lines with that gid, in order."""
    return [(x, y) for line in figure.axes[axes].lines if line.get_gid() == gid
            for x, y in zip(line.get_xdata(), line.get_ydata())]


def bars_of(axes, gid):
    """(along, length) of the bars with that gid; upright ones and lying ones."""
    return [(bar.get_x() + bar.get_width() / 2, bar.get_height()) if bar.get_width() in (0.72, 0.4) else
            (bar.get_y() + bar.get_height() / 2, bar.get_width()) for bar in axes.patches if bar.get_gid() == gid]
