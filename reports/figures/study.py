# SPDX-License-Identifier: Apache-2.0
"""Figures of studies: sweeps, sensitivities, comparisons, capacity plans, break-evens, searches."""

from figures.style import (COLOURS, COLUMN, GREY, HATCHES, INK, LINES, MARKERS, PAPER, WIDE, Line2D, Patch, add_note, grey_label,
                           legend_below, line_style, log_axis, matplotlib, new_figure, part_style, plain, plain_numbers, short,
                           shown_of, wrapped)

DAY = 86400.0
MOST_SHAPES = 2000  # of a vector figure; more points are drawn as pixels
MOST_SERIES = 24  # of a figure; one that leaves some out says how many
MOST_TERMS = 8
MOST_ROWS = 14


def short_key(key):
    name = key.split(".")[-1].replace("_", " ")
    return "GPUs" if name == "gpus" else name


def axes_of(document):
    """{axis: its values in order of appearance} of those that vary in a sweep."""
    values = {}
    for point in document["points"]:
        for key, value in point["axes"].items():
            seen = values.setdefault(key, [])
            if value not in seen:
                seen.append(value)
        if "series" in point:
            seen = values.setdefault("series", [])
            if point["series"] not in seen:
                seen.append(point["series"])
    for key, seen in values.items():
        if key != "series" and all(isinstance(v, (int, float)) for v in seen):
            seen.sort()
    return {key: seen for key, seen in values.items() if len(seen) > 1}


def place_of(point, key):
    return point.get("series") if key == "series" else point["axes"].get(key)


def done(document):
    return [point for point in document["points"] if point["status"] == "done"]


def heat_map(document):
    """Step time over the two widest axes; other axes stand where the fastest point has them. Hatched: does not fit."""
    axes_values = sorted(axes_of(document).items(), key=lambda item: -len(item[1]))
    if len(axes_values) < 2 or not done(document):
        return None
    (x_key, x_values), (y_key, y_values), *others = axes_values
    x_values, y_values = x_values[:32], y_values[:32]
    best = min(done(document), key=lambda point: point["step_time_s"])
    shown = [p for p in document["points"] if all(place_of(p, key) == place_of(best, key) for key, _ in others)
             and place_of(p, x_key) in x_values and place_of(p, y_key) in y_values]
    height = min(0.24, 6 / len(y_values)) * len(y_values) + 1.3
    figure, cells = new_figure(WIDE if len(x_values) > 8 else COLUMN, height)
    axes = cells[0][0]
    times = [p["step_time_s"] for p in shown if p["status"] == "done"]
    norm = matplotlib.colors.LogNorm(min(times), max(max(times), 1.0001 * min(times)))
    colours = matplotlib.colormaps["cividis"] if hasattr(matplotlib, "colormaps") else matplotlib.cm.get_cmap("cividis")
    for point in shown:
        x, y = x_values.index(place_of(point, x_key)), y_values.index(place_of(point, y_key))
        if point["status"] != "done":
            axes.add_patch(matplotlib.patches.Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=PAPER, edgecolor=GREY, hatch="////",
                                                        linewidth=0, gid=point["status"]))
            continue
        colour = colours(norm(point["step_time_s"]))
        axes.add_patch(matplotlib.patches.Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor=PAPER, linewidth=0.3,
                                                    gid="done"))
        if len(x_values) <= 8 and len(y_values) <= 16:
            dark = sum(colour[:3]) < 1.4
            axes.text(x, y, f"{point['step_time_s']:.3g}", ha="center", va="center", fontsize=5.6,
                      color="#ffffff" if dark else "#101012")
    axes.set_xlim(-0.5, len(x_values) - 0.5)
    axes.set_ylim(-0.5, len(y_values) - 0.5)
    axes.set_xticks(range(len(x_values)), [plain(value) for value in x_values])
    axes.set_yticks(range(len(y_values)), [wrapped(value, 18) for value in y_values])
    axes.grid(visible=False)
    axes.set_xlabel(short_key(x_key))
    axes.set_ylabel(short_key(y_key))
    bar = figure.colorbar(matplotlib.cm.ScalarMappable(norm, colours), ax=axes, fraction=0.05, pad=0.03)
    bar.ax.minorticks_off()
    ticks = [m * 10.0 ** e for e in range(-9, 9) for m in (1, 2, 5) if norm.vmin <= m * 10.0 ** e <= norm.vmax]
    ticks = ticks if len(ticks) > 1 else [norm.vmin, norm.vmax]
    bar.set_ticks(ticks, labels=[f"{tick:.3g}" for tick in ticks])
    bar.set_label("step time (s)")
    bar.outline.set_linewidth(0.4)
    if others:
        axes.set_title(wrapped(", ".join(f"{short_key(key)} {place_of(best, key)}" for key, _ in others), 56))
    handles = [Patch(facecolor=PAPER, edgecolor=GREY, hatch="////", linewidth=0)]
    if any(point["status"] != "done" for point in shown):
        legend_below(figure, handles, ["does not fit or is refused"])
    return figure


def trade_off(document):
    """Every point of a sweep: tokens per second over the memory it takes, by GPUs."""
    points = done(document)
    if len(points) < 2:
        return None
    counts = sorted({point["gpus"] for point in points})
    size = -(-len(counts) // 7)
    groups = [counts[i:i + size] for i in range(0, len(counts), size)]
    figure, cells = new_figure(COLUMN, 2.4)
    axes = cells[0][0]
    for i, group in enumerate(groups):
        mine = [point for point in points if group[0] <= point["gpus"] <= group[-1]]
        axes.plot([p["memory_B"]["total"] / 2 ** 30 for p in mine], [p["tokens_per_s"] for p in mine], linestyle="none",
                  marker=MARKERS[i], markersize=3, markerfacecolor="none", markeredgewidth=0.7, color=COLOURS[i], gid=f"gpus {group[0]}",
                  rasterized=len(points) > MOST_SHAPES)
    axes.set_xlim(0, 1.06 * max(p["memory_B"]["total"] / 2 ** 30 for p in points))
    log_axis(axes)
    axes.set_xlabel("memory of the fullest GPU (GiB)")
    axes.set_ylabel("tokens per s")
    legend_below(figure, [Line2D([], [], linestyle="none", marker=MARKERS[i], markerfacecolor="none", color=COLOURS[i])
                          for i in range(len(groups))], [f"{group[0]} GPUs" if len(group) == 1 else f"{group[0]} to {group[-1]} GPUs" for group in groups])
    return figure


def one_axis(document):
    """Step time over the one axis of a sweep, a line per series."""
    varying = axes_of(document)
    keys = [key for key in varying if key != "series"]
    if len(keys) != 1:
        return None
    key = keys[0]
    numeric = all(isinstance(value, (int, float)) for value in varying[key])
    figure, cells = new_figure(COLUMN, 2.4)
    axes = cells[0][0]
    every = varying.get("series", [None])
    names = every[:MOST_SERIES]
    for i, name in enumerate(names):
        mine = [p for p in done(document) if p.get("series") == name or name is None]
        mine.sort(key=lambda p: varying[key].index(place_of(p, key)))
        x = [place_of(p, key) if numeric else varying[key].index(place_of(p, key)) for p in mine]
        axes.plot(x, [p["step_time_s"] for p in mine], gid=f"series {i}", **line_style(i))
    if numeric and min(varying[key]) > 0 and max(varying[key]) / min(varying[key]) > 15:
        axes.set_xscale("log")
        plain_numbers(axes.xaxis, varying[key])
    elif not numeric:
        axes.set_xticks(range(len(varying[key])), [wrapped(value, 12) for value in varying[key]])
    log_axis(axes)
    axes.set_xlabel(short_key(key))
    axes.set_ylabel("step time (s)")
    add_note(axes, shown_of(len(names), len(every), "series"))
    if names != [None]:
        legend_below(figure, [Line2D([], [], **line_style(i)) for i in range(len(names))], names)
    return figure


def sensitivities(document):
    """Feasible series of a sensitivity or sensitivity-set document."""
    return [one for one in document.get("series", [document]) if isinstance(one, dict) and one.get("parameters")] \
        if document["schema"].startswith("scapesim.sensitivity-set") else [document] if document.get("parameters") else []


def tornado(document):
    """Step time with each parameter lowered and raised by the same share, largest effect first."""
    series = sensitivities(document)
    if not series:
        return None
    one = series[0]
    rows = one["parameters"][:MOST_ROWS]
    figure, cells = new_figure(COLUMN, 0.95 + 0.2 * len(rows))
    axes = cells[0][0]
    base = one["step_time_s"]
    for place, row in enumerate(rows):
        for key, index in (("step_time_less_s", 0), ("step_time_more_s", 1)):
            if row[key] is not None:
                axes.barh(place, row[key] - base, 0.72, base, gid=key, **part_style(index))
    axes.axvline(base, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(rows)), [wrapped(row["name"], 32) for row in rows])
    for label in axes.get_yticklabels():
        label.set_fontsize(5.8)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.margins(x=0.06)
    axes.set_xlabel("step time (s)")
    axes.set_title(wrapped(f"{one['series'] or one['scenario']}, {one['gpus']} GPUs: {base:.4g} s", 56))
    add_note(axes, shown_of(len(rows), len(one["parameters"]), "parameters", "the strongest"), shown_of(1, len(series), "series"))
    change = 100 * one["change"]
    legend_below(figure, [Patch(**part_style(0)), Patch(**part_style(1))], [f"{change:g} % less", f"{change:g} % more"])
    return figure


def bounds(document):
    """What each part of the step is bound by."""
    series = sensitivities(document)
    if not series or not series[0].get("parts"):
        return None
    one = series[0]
    rows = one["parts"][:MOST_ROWS]
    kinds = list(dict.fromkeys(kind for row in rows for kind, share in row["shares"].items() if share > 0))
    figure, cells = new_figure(COLUMN, 0.95 + 0.2 * len(rows))
    axes = cells[0][0]
    for place, row in enumerate(rows):
        base = 0
        for index, kind in enumerate(kinds):
            length = row["shares"].get(kind, 0) * row["time_s"]
            if length > 0:
                axes.barh(place, length, 0.72, base, gid=kind, **part_style(index))
            base += length
    axes.set_yticks(range(len(rows)), [wrapped(row["name"], 32) for row in rows])
    for label in axes.get_yticklabels():
        label.set_fontsize(5.8)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("time of the step by what bounds it (s)")
    add_note(axes, shown_of(len(rows), len(one["parts"]), "parts"), shown_of(1, len(series), "series"))
    legend_below(figure, [Patch(**part_style(i)) for i in range(len(kinds))], kinds)
    return figure


def differences(document):
    """What makes the difference between scenarios: their terms side by side, longest first."""
    labels = [column["label"] for column in document["columns"]][:MOST_SERIES]
    terms = sorted(document["terms"], key=lambda term: -max([v or 0 for v in term["time_s"]]))[:MOST_TERMS]
    if not terms:
        return None
    bar = min(0.085, 7.5 / len(terms) / len(labels))
    figure, cells = new_figure(COLUMN, 0.95 + len(terms) * (0.1 + bar * len(labels)))
    axes = cells[0][0]
    width = 0.86 / len(labels)
    for place, term in enumerate(terms):
        for i, value in enumerate(term["time_s"][:len(labels)]):
            axes.barh(place + (i - (len(labels) - 1) / 2) * width, value or 0, 0.92 * width, gid=f"column {i}", **part_style(i))
    axes.set_yticks(range(len(terms)), [wrapped(term["name"], 28) for term in terms])
    for label in axes.get_yticklabels():
        label.set_fontsize(5.8)
    axes.set_ylim(len(terms) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("time per step (s)" if document["per"] == "step" else f"time per {document['per']} (s)")
    add_note(axes, shown_of(len(labels), len(document["columns"]), "columns"),
             shown_of(len(terms), len(document["terms"]), "terms", "the longest"))
    legend_below(figure, [Patch(**part_style(i)) for i in range(len(labels))], labels)
    return figure


def pareto(document):
    """Plans by time and cost; the line joins those that no other beats in both."""
    fitting = [plan for plan in document["plans"] if plan["time_s"] is not None]
    key, what = ("cost_usd", "cost (USD)") if any(p["cost_usd"] is not None for p in fitting) else ("gpu_hours", "GPU-hours")
    fitting = [plan for plan in fitting if plan[key] is not None]
    if not fitting:
        return None
    figure, cells = new_figure(COLUMN, 2.6)
    axes = cells[0][0]
    groups = [("meets the goal", [p for p in fitting if p["meets"]], 0), ("misses it", [p for p in fitting if not p["meets"]], 1)]
    handles, labels = [], []
    for name, plans, i in groups:
        if plans:
            style = {"linestyle": "none", "marker": MARKERS[i], "markersize": 3.2, "color": COLOURS[i],
                     "markerfacecolor": COLOURS[i] if i == 0 else "none", "markeredgewidth": 0.7}
            axes.plot([p["time_s"] / DAY for p in plans], [p[key] for p in plans], gid=f"plans {i}",
                      rasterized=len(fitting) > MOST_SHAPES, **style)
            handles.append(Line2D([], [], **style))
            labels.append(name)
    front = sorted((p["time_s"] / DAY, p[key]) for p in fitting if p["pareto"])
    if front:
        axes.plot(*zip(*front), color=INK, linewidth=0.9, drawstyle="steps-post", gid="front", zorder=1)
        handles.append(Line2D([], [], color=INK, linewidth=0.9))
        labels.append("none is faster and cheaper")
    log_axis(axes, "x", 1.5)
    log_axis(axes, "y", 1.5)
    deadline = document["goal"]["deadline_s"]
    if deadline and axes.get_xlim()[0] < deadline / DAY < axes.get_xlim()[1]:
        axes.axvline(deadline / DAY, color=INK, linewidth=0.8, linestyle="--", gid="deadline")
        handles.append(Line2D([], [], color=INK, linewidth=0.8, linestyle="--"))
        labels.append("deadline")
    axes.set_xlabel("calendar time (days)")
    axes.set_ylabel(what)
    legend_below(figure, handles, labels)
    return figure


def break_even(document):
    """Time to the same loss over the baseline's, over the network and over GPUs; below 1 the series pays."""
    others = [row for row in document["rows"] if row["series"] != document["baseline"]]
    rows = [row for row in others if len(row["network"]["samples"]) > 1 or len(row["gpus"]["samples"]) > 1][:MOST_SERIES]
    if not rows:
        return None
    figure, cells = new_figure(WIDE, 2.5, 1, 2, sharey=True)
    for axes, part, key, scale, what in ((cells[0][0], "network", "network_Bps", 1e-9, "network that a NIC carries (GB/s)"),
                                         (cells[0][1], "gpus", "gpus", 1, "GPUs")):
        for i, row in enumerate(rows):
            samples = row[part]["samples"]
            look = series_style(i)
            axes.plot([s[key] * scale for s in samples], [s["ratio"] for s in samples], gid=f"{part} {i}", color=look["color"],
                      linestyle=look["linestyle"])
            for crossing in row[part]["crossings"]:
                axes.plot(crossing[key] * scale, 1, gid=f"{part} crossing {i}", zorder=3, markersize=4.5, **look)
        axes.axhline(1, color=INK, linewidth=0.8)
        axes.set_xscale("log")
        log_axis(axes, "x")
        axes.set_xlabel(what)
    cells[0][0].axvline(document["network_Bps"] / 1e9, color=INK, linewidth=0.8, linestyle=":")
    cells[0][1].axvline(document["gpus"], color=INK, linewidth=0.8, linestyle=":")
    cells[0][0].set_yscale("log")
    log_axis(cells[0][0], "y", 1.5)
    cells[0][0].set_ylabel(wrapped(f"time to loss over that of {document['baseline']}", 30))
    cells[0][0].set_title("dotted: the scenario; below 1 it pays")
    note = shown_of(len(rows), len(others), "series", "those with samples" if len(rows) < MOST_SERIES else "")
    if note:
        cells[0][1].set_title(note)
    legend_below(figure, [Line2D([], [], **series_style(i)) for i in range(len(rows))], [row["series"] for row in rows])
    return figure


def series_style(index):
    """Of a series of many: line and marker go on with the next when the colours begin anew, so that no two are alike."""
    turn = index // len(COLOURS)
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": LINES[(index + turn) % len(LINES)],
            "marker": MARKERS[(index + turn) % len(MARKERS)], "markerfacecolor": PAPER}


def split_text(split):
    words = {"parallelism.tp": "tp", "parallelism.pp": "pp", "parallelism.cp": "cp", "parallelism.ep": "ep",
             "training.micro_batch": "mb", "training.recompute": "", "strategy.sharding": "",
             "parallelism.virtual_stages": "v", "parallelism.schedule": ""}
    return " ".join(f"{words[key]}{value}" for key, value in split.items()
                    if key in words and value not in (1, "none", "1"))


def best_splits(document):
    """The best splits of a search: where their steps go."""
    from figures.step import PARTS
    plans = document["plans"][:MOST_ROWS]
    if not plans:
        return None
    figure, cells = new_figure(COLUMN, 0.95 + 0.22 * len(plans))
    axes = cells[0][0]
    used = set()
    for place, plan in enumerate(plans):
        base = 0
        for index, (key, _, colour) in enumerate(PARTS):
            length = plan["run"]["breakdown_s"][key]
            if length > 0:
                used.add(index)
                axes.barh(place, length, 0.72, base, gid=f"part {index}", **part_style(index, colour))
            base += length
        grey_label(axes, 1.01 * base, place, f"{100 * plan['run']['mfu']:.1f} %", ha="left", va="center")
    axes.set_yticks(range(len(plans)), [wrapped(split_text(plan["set"]) or "no split", 34) for plan in plans])
    for label in axes.get_yticklabels():
        label.set_fontsize(5.6)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1.16 * max(plan["run"]["step_time_s"] for plan in plans))
    axes.set_xlabel("step time (s); MFU beside")
    add_note(axes, shown_of(len(plans), len(document["plans"]), "splits", "the best"))
    legend_below(figure, [Patch(**part_style(i, PARTS[i][2])) for i in sorted(used)], [PARTS[i][1] for i in sorted(used)])
    return figure


def title_of(document):
    kind = document["schema"].rpartition("/")[0].rpartition(".")[2]
    if kind == "sweep":
        return f"sweep of {document['points'][0]['scenario']['name']}: {len(document['points'])} points"
    if kind.startswith("sensitivity"):
        one = document["series"][0] if kind == "sensitivity-set" else document
        return f"sensitivity of {one['scenario']} on {one['gpus']} GPUs"
    if kind == "plan":
        return f"plan for {short(document['goal']['tokens'])} tokens"
    if kind == "breakeven":
        return f"break-even of {document['scenario']} against {document['baseline']}"
    if kind == "search":
        name = document["plans"][0]["run"]["scenario"]["name"] if document["plans"] else "a model"
        return f"best splits of {name}"
    return " against ".join(column["label"] for column in document["columns"])


__all__ = ["heat_map", "trade_off", "one_axis", "tornado", "bounds", "differences", "pareto", "break_even", "best_splits",
           "title_of", "HATCHES"]
