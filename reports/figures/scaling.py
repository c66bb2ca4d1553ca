# SPDX-License-Identifier: Apache-2.0
"""Figures over numbers of GPUs: scapesim.scale/1."""

from figures.results import label_of, series_of
from figures.style import (COLUMN, WIDE, gpu_axis, hollow_style, legend_below, legend_line, line_style, log_axis,
                           new_figure)


def counts_of(document):
    """GPU counts on the axis: predicted ones, and measured ones of the same series."""
    series = series_of(document)
    counts = {run["gpus"] for runs in series.values() for run in runs}
    return sorted(counts | {row["gpus"] for row in document.get("against", []) if row["series"] in series})


def measured_of(document, name, key):
    """(GPUs, value) of a series' measured step times; `key` "measured" or "measured_efficiency"."""
    return sorted((row["gpus"], row[key]) for row in document.get("against", [])
                  if row["series"] == name and row["metric"] == "step_time_s" and row.get(key) is not None)


def draw_band(axes, runs, colour):
    """The interval of the step time, where there is one."""
    runs = [run for run in runs if run["step_time_low_s"] is not None]
    gpus, low, high = ([run[key] for run in runs] for key in ("gpus", "step_time_low_s", "step_time_high_s"))
    if len(runs) == 1:  # a band of one point has no width
        axes.vlines(gpus, low, high, color=colour, alpha=0.3, linewidth=4)
    elif runs:
        axes.fill_between(gpus, low, high, color=colour, alpha=0.18, linewidth=0)
    return bool(runs)


def key_of(document, intervals=True):
    """What lines, bands and markers mean."""
    runs = [run for runs in series_of(document).values() for run in runs]
    key = "lines: predicted"
    if intervals and any(run["step_time_low_s"] is not None for run in runs):
        key += f", bands: {100 * runs[0]['interval_level']:g} % interval"
    return key + (", hollow: measured" if document.get("against") else "")


def draw_step_times(axes, document):
    for i, (name, runs) in enumerate(series_of(document).items()):
        axes.plot([run["gpus"] for run in runs], [run["step_time_s"] for run in runs], gid=f"predicted {i}", **line_style(i))
        draw_band(axes, runs, line_style(i)["color"])
        measured = measured_of(document, name, "measured")
        if measured:
            axes.plot(*zip(*measured), gid=f"measured {i}", **hollow_style(i))
    gpu_axis(axes, counts_of(document))
    log_axis(axes)
    axes.set_ylabel("step time (s)")


def draw_efficiencies(axes, document):
    for i, (name, runs) in enumerate(series_of(document).items()):
        runs = [run for run in runs if run["efficiency"] is not None]
        axes.plot([run["gpus"] for run in runs], [100 * run["efficiency"] for run in runs], gid=f"predicted {i}",
                  **line_style(i))
        for gpus, efficiency in measured_of(document, name, "measured_efficiency"):
            axes.plot(gpus, 100 * efficiency, gid=f"measured {i}", **hollow_style(i))
    gpu_axis(axes, counts_of(document))
    axes.set_ylabel(f"{'weak' if document.get('scaling') == 'weak' else 'strong'}-scaling efficiency (%)")
    axes.set_ylim(0, max(105, axes.get_ylim()[1]))


def add_series_legend(figure, document):
    names = list(series_of(document))
    legend_below(figure, [legend_line(i, measured_of(document, name, "measured")) for i, name in enumerate(names)], names)


def step_time(document):
    """Step time over GPUs: predicted with its interval, measured points beside it."""
    figure, cells = new_figure(height=2.6)
    draw_step_times(cells[0][0], document)
    cells[0][0].set_title(key_of(document))
    add_series_legend(figure, document)
    return figure


def efficiency(document):
    """Scaling efficiency against the smallest count of each series."""
    figure, cells = new_figure(height=2.6)
    draw_efficiencies(cells[0][0], document)
    cells[0][0].set_title(key_of(document, intervals=False))
    add_series_legend(figure, document)
    return figure


def scaling(document):
    """Step time and efficiency side by side, for two columns."""
    figure, cells = new_figure(WIDE, 3.0, 1, 2)
    draw_step_times(cells[0][0], document)
    draw_efficiencies(cells[0][1], document)
    cells[0][0].set_title(key_of(document))
    add_series_legend(figure, document)
    return figure


def hidden(document):
    """Share of communication that runs beside other work."""
    known = [run for runs in series_of(document).values() for run in runs if run["overlap_fraction"] is not None]
    if not known:
        return None
    figure, cells = new_figure(COLUMN, 2.4)
    axes = cells[0][0]
    for i, runs in enumerate(series_of(document).values()):
        runs = [run for run in runs if run["overlap_fraction"] is not None]
        axes.plot([run["gpus"] for run in runs], [100 * run["overlap_fraction"] for run in runs], gid=f"predicted {i}",
                  **line_style(i))
    gpu_axis(axes, counts_of(document))
    axes.set_ylim(-4, 104)
    axes.set_ylabel("communication hidden (%)")
    names = list(series_of(document))
    legend_below(figure, [legend_line(i, False) for i in range(len(names))], names)
    return figure


def title_of(document):
    point = document["points"][0]
    kind = "weak" if document.get("scaling") == "weak" else "strong"
    return f"{point['scenario']['name']}: {kind} scaling"


__all__ = ["step_time", "efficiency", "scaling", "hidden", "title_of", "label_of"]
