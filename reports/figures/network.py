# SPDX-License-Identifier: Apache-2.0
"""Figures of collectives and of fits with their residuals: scapesim.collective/1, calibration/1."""

from figures.style import (COLOURS, COLUMN, INK, LINES, Line2D, bytes_axis, hollow_style, legend_below, line_style, log_axis,
                           new_figure, plain, plain_numbers, wrapped)

MOST_SETS = 6  # of one figure, as many as colours tell apart


def two_panels(figure_height=3.2):
    """Values above, residuals below, over one x axis."""
    figure, cells = new_figure(COLUMN, figure_height, 2, 1, sharex=True, gridspec_kw={"height_ratios": [2.2, 1]})
    above, below = cells[0][0], cells[1][0]
    below.axhline(0, color=INK, linewidth=0.7)
    return figure, above, below


def draw_residuals(below, x, residuals, index):
    below.plot(x, [100 * value for value in residuals], gid=f"residuals {index}",
               **{**hollow_style(index), "markersize": 3, "markeredgewidth": 0.7})
    below.set_ylabel("error (%)")


def even_limits(below):
    limit = max(1, *[abs(value) for value in below.get_ylim()])
    below.set_ylim(-1.05 * limit, 1.05 * limit)


def bandwidth(document):
    """Bus bandwidth over size as nccl-tests counts both; measured calls with their errors below."""
    rows, measured = document["rows"], document.get("measured", [])
    if measured:
        figure, axes, below = two_panels()
    else:
        figure, cells = new_figure(COLUMN, 2.3)
        axes = below = cells[0][0]
    names = list(dict.fromkeys(f"{row['algorithm']}{', ' + row['protocol'] if row['protocol'] else ''}" for row in rows))
    axes.plot([row["size_B"] for row in rows], [row["busbw_Bps"] / 1e9 for row in rows], color=COLOURS[0], linewidth=1.2,
              gid="predicted 0")
    for i, name in enumerate(names[:7]):
        mine = [row for row in rows if f"{row['algorithm']}{', ' + row['protocol'] if row['protocol'] else ''}" == name]
        axes.plot([row["size_B"] for row in mine], [row["busbw_Bps"] / 1e9 for row in mine], linestyle="none",
                  marker=".", markersize=5, color=COLOURS[i], gid=f"mode {i}")
    handles = [Line2D([], [], color=COLOURS[i], marker=".", linestyle="-" if i == 0 else "none", markersize=5)
               for i in range(len(names[:7]))]
    if measured:
        style = {**hollow_style(1), "markersize": 3.6}
        axes.plot([row["size_B"] for row in measured], [row["busbw_Bps"] / 1e9 for row in measured], gid="measured 0", **style)
        draw_residuals(below, [row["size_B"] for row in measured], [row["error"] for row in measured], 1)
        even_limits(below)
        handles.append(Line2D([], [], **style))
    if len(rows) > 1:
        axes.set_xscale("log")
        bytes_axis(below)
    axes.set_ylim(0, None)
    below.set_xlabel("size")
    axes.set_ylabel("bus bandwidth (GB/s)")
    if "collective" in document:
        axes.set_title(wrapped(f"{document['collective']}, {document['gpus']} GPUs of {document['cluster']}", 52))
    legend_below(figure, handles, [f"predicted: {name}" for name in names[:7]] + (["measured"] if measured else []))
    return figure


def fits_of(document, *families):
    return [fit for fit in document["fits"] if fit["family"] in families]


def bandwidth_fit(document):
    """Measured collectives and the fit through them; residuals below."""
    fits = fits_of(document, "collective")[:MOST_SETS]
    if not fits:
        return None
    figure, axes, below = two_panels(3.4)
    for i, fit in enumerate(fits):
        sizes = [row["size_B"] for row in fit["rows"]]
        axes.plot(sizes, [row["fitted_busbw_Bps"] / 1e9 for row in fit["rows"]], color=COLOURS[i], linestyle=LINES[i],
                  gid=f"fitted {i}")
        axes.plot(sizes, [row["measured_busbw_Bps"] / 1e9 for row in fit["rows"]], gid=f"measured {i}",
                  **{**hollow_style(i), "markersize": 3.2, "markeredgewidth": 0.8})
        draw_residuals(below, sizes, [row["residual"] for row in fit["rows"]], i)
    axes.set_xscale("log")
    axes.set_yscale("log")
    log_axis(axes)
    bytes_axis(below)
    even_limits(below)
    below.set_xlabel("size")
    axes.set_ylabel("bus bandwidth (GB/s)")
    axes.set_title("lines: fitted, hollow: measured")
    legend_below(figure, [Line2D([], [], **{**line_style(i), **{k: v for k, v in hollow_style(i).items()
                                                                if k.startswith("marker")}}) for i in range(len(fits))],
                 [fit["name"] for fit in fits])
    return figure


def training_fit(document):
    """Computation and communication of the calibration runs with the fit through them; residuals below."""
    fits = fits_of(document, "computation", "communication")
    if not fits:
        return None
    figure, axes, below = two_panels(3.2)
    counts = sorted({row["gpus"] for fit in fits for row in fit["rows"]})
    for i, fit in enumerate(fits):
        gpus = [row["gpus"] for row in fit["rows"]]
        axes.plot(gpus, [row["fitted_s"] for row in fit["rows"]], gid=f"fitted {i}", color=COLOURS[i], linestyle=LINES[i])
        axes.plot(gpus, [row["measured_s"] for row in fit["rows"]], gid=f"measured {i}", **hollow_style(i))
        draw_residuals(below, gpus, [row["residual"] for row in fit["rows"]], i)
    axes.set_xscale("log")
    axes.set_yscale("log")
    log_axis(axes)
    plain_numbers(below.xaxis, counts)
    even_limits(below)
    below.set_xlabel("GPUs")
    axes.set_ylabel("time per step (s)")
    axes.set_title("lines: fitted, hollow: measured")
    legend_below(figure, [Line2D([], [], **{**line_style(i), **{k: v for k, v in hollow_style(i).items()
                                                                if k.startswith("marker")}}) for i in range(len(fits))],
                 [fit["name"] for fit in fits])
    return figure


def kernel_fit(document):
    """Residuals of timed matrix products and attention over their arithmetic."""
    fits = fits_of(document, "gemm", "attention")
    if not fits:
        return None
    figure, cells = new_figure(COLUMN, 2.2)
    axes = cells[0][0]
    axes.axhline(0, color=INK, linewidth=0.7)
    for i, fit in enumerate(fits):
        draw_residuals(axes, [row["flops"] for row in fit["rows"]], [row["residual"] for row in fit["rows"]], i)
    axes.set_xscale("log")
    log_axis(axes, "x")
    even_limits(axes)
    axes.set_xlabel("arithmetic of one call (FLOP)")
    axes.set_ylabel("fitted against measured (%)")
    legend_below(figure, [Line2D([], [], **hollow_style(i)) for i in range(len(fits))],
                 [f"{fit['name']} ({len(fit['rows'])})" for fit in fits])
    return figure


def title_of(document):
    if document["schema"].startswith("scapesim.calibration"):
        return f"fit of calibration {document['calibration']['id']}"
    if "collective" in document:
        return plain(f"{document['collective']} on {document['gpus']} GPUs of {document['cluster']}")
    return "a collective over sizes"
