# SPDX-License-Identifier: Apache-2.0
"""Tables of the page: columns with their unit, cells as the result has them, to a few digits."""

from figures.results import infeasible_of, label_of, runs_of

MOST_ROWS = 1000  # of a table on the page; the file holds the rest
GIB = 2 ** 30


class Table:
    """`columns` are (heading, cell of a row); text columns hold str, others numbers or None."""

    def __init__(self, title, columns, rows, shown=True):
        self.title = title
        self.headings = [heading for heading, _ in columns]
        rows = list(rows)
        self.left_out = max(0, len(rows) - MOST_ROWS)
        self.cells = [[cell(row) for _, cell in columns] for row in rows[:MOST_ROWS]]
        self.shown = shown

    def is_text(self, column):
        return any(isinstance(row[column], str) for row in self.cells)

    @property
    def empty_columns(self):
        """Columns in which no row has anything."""
        return {i for i in range(len(self.headings)) if all(row[i] in (None, "") for row in self.cells)}


def digits(value):
    """Five significant digits without an exponent where that is short."""
    if value is None:
        return ""
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return str(int(value))
    if 1e-4 <= abs(value) < 1e9:
        return f"{value:.{max(0, 5 - len(str(int(abs(value)))))}f}" if abs(value) >= 1 else f"{value:.4g}"
    return f"{value:.4g}"


def shown(value):
    """A cell: lists and yes or no as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def key(*names, scale=1):
    """Reads nested keys; None where one is missing."""
    def read(row):
        for name in names:
            row = row.get(name) if isinstance(row, dict) else None
        return row * scale if scale != 1 and isinstance(row, (int, float)) else shown(row)
    return read


def several(document, name):
    return len({run.get(name) for run in runs_of(document)}) > 1


def points(document):
    first = runs_of(document)
    columns = [("series", label_of), ("GPUs", key("gpus")), ("step s", key("step_time_s")),
               ("low s", key("step_time_low_s")), ("high s", key("step_time_high_s")),
               ("efficiency %", key("efficiency", scale=100)), ("MFU %", key("mfu", scale=100)),
               ("tokens/s", key("tokens_per_s")), ("hidden %", key("overlap_fraction", scale=100)),
               ("memory GiB", key("memory_B", "total", scale=1 / GIB)), ("energy J", key("energy_J")), ("cost $", key("cost_usd"))]
    columns = [column for column in columns if any(column[1](run) is not None for run in first)]
    return Table("Predictions", columns, first)


def parts(document):
    from figures.step import MEMORY, PARTS
    columns = [("series", label_of), ("GPUs", key("gpus"))]
    columns += [(f"{name} s", key("breakdown_s", part)) for part, name, _ in PARTS]
    columns += [(f"{name} GiB", key("memory_B", part, scale=1 / GIB)) for part, name, _ in MEMORY]
    return Table("Time and memory by part", columns, runs_of(document), shown=False)


def exchanges(document):
    rows = [{**row, "series": label_of(run), "gpus": run["gpus"]} for run in runs_of(document) for row in run["communication"]]
    return Table("Communication", [
        ("series", key("series")), ("GPUs", key("gpus")), ("name", key("name")), ("collective", key("collective")),
        ("ranks", key("group_size")), ("calls", key("count")), ("MB per call", key("bytes_B", scale=1e-6)),
        ("busbw GB/s", key("busbw_Bps", scale=1e-9)), ("time s", key("time_s")), ("exposed s", key("exposed_s")),
        ("algorithm", key("algorithm")), ("protocol", key("protocol"))], rows, shown=False)


def against(document):
    return Table("Beside what was measured", [
        ("series", key("series")), ("GPUs", key("gpus")), ("metric", key("metric")), ("measured", key("measured")),
        ("predicted", key("predicted")), ("error %", key("error", scale=100))], document.get("against", []))


def infeasible(document):
    return Table("Does not fit", [("what", lambda r: r[0]), ("reason", lambda r: r[1]), ("way out", lambda r: r[2])],
                 infeasible_of(document))


def kernels(document):
    rows = [{**row, "series": label_of(run)} for run in runs_of(document) for row in run.get("kernels", [])]
    return Table("Kernels of the layers", [
        ("series", key("series")), ("name", key("name")), ("kind", key("kind")), ("shape", key("shape")), ("calls", key("calls")),
        ("GFLOP", key("flops", scale=1e-9)), ("MB", key("bytes_B", scale=1e-6)), ("us", key("time_s", scale=1e6)),
        ("TFLOP/s", key("flops_per_s", scale=1e-12)), ("GB/s", key("bytes_per_s", scale=1e-9)),
        ("all calls ms", key("total_s", scale=1e3))], rows, shown=False)


def plain_table(title, rows, columns, shown=True):
    """Columns are keys of the rows, or (heading, key, scale)."""
    wanted = []
    for column in columns:
        heading, name, scale = (column, column, 1) if isinstance(column, str) else column
        wanted.append((heading.replace("_", " ") if isinstance(column, str) else heading, key(*name.split("/"), scale=scale)))
    return Table(title, wanted, rows, shown)


def sweep(document):
    axes = list(dict.fromkeys(axis for point in document["points"] for axis in point["axes"]))
    columns = [("point", key("point"))]
    if any("series" in point for point in document["points"]):
        columns.append(("series", key("series")))
    columns += [(axis.split(".")[-1], key("axes", axis)) for axis in axes]
    columns += [("status", key("status")), ("GPUs", key("gpus")), ("step s", key("step_time_s")), ("tokens/s", key("tokens_per_s")),
                ("MFU %", key("mfu", scale=100)), ("hidden %", key("overlap_fraction", scale=100)),
                ("memory GiB", key("memory_B", "total", scale=1 / GIB)), ("reason", key("reason"))]
    return Table("Points", columns, document["points"])


def of(title, part, columns, shown=True):
    return lambda document: plain_table(title, document.get(part) or [], columns, shown)


def series_rows(part):
    def rows(document):
        return [{**row, "series": one.get("series")} for one in
                (document["series"] if document["schema"].startswith("scapesim.sensitivity-set") else [document])
                for row in one.get(part, [])]
    return rows


def terms(document):
    labels = [column["label"] for column in document["columns"]]
    columns = [("term", key("name")), ("kind", key("kind"))]
    columns += [(label, lambda row, i=i: row["time_s"][i]) for i, label in enumerate(labels)]
    return Table("Where the step goes (s)", columns, document["terms"])


def changed(document):
    labels = [column["label"] for column in document["columns"]]
    columns = [("key", key("key"))] + [(label, lambda row, i=i: row["values"][i]) for i, label in enumerate(labels)]
    return Table("What differs in the scenarios", columns, document["changed"])


def plans(document):
    from figures.study import split_text
    return Table("Best splits", [
        ("split", lambda row: split_text(row["set"])), ("GPUs", key("run", "gpus")), ("step s", key("run", "step_time_s")),
        ("MFU %", key("run", "mfu", scale=100)), ("bubble s", key("run", "breakdown_s", "bubble")),
        ("memory GiB", key("run", "memory_B", "total", scale=1 / GIB))], document["plans"])


def fits(document):
    rows = [{**row, "fit": fit["name"], "x": row[fit["x"]]} for fit in document["fits"] for row in fit["rows"]]
    return plain_table("Rows of the fits", rows, ["fit", "x", ("measured s", "measured_s", 1), ("fitted s", "fitted_s", 1),
                                                  ("residual %", "residual", 100)], shown=False)


def gaps(document):
    return Table("Not calibrated", [("what and why", lambda row: row)], document["gaps"])


def numbers(document):
    rows = [{**entry, "key": name} for name, entry in document["numbers"].items()]
    rows += [{**entry, "key": name, "low": entry["low_factor"], "high": entry["high_factor"]}
             for name, entry in document["curves"].items()]
    return plain_table("Numbers and curves (a curve: factors of its range)", rows,
                       ["key", "value", "low", "high", "factor", "provenance", "source"])


PERCENT = 100
RUNS = [infeasible, points, against, parts, exchanges, kernels]
CHECKS = of("Error budget", "checks", ["name", ("value %", "value", PERCENT), ("limit %", "limit", PERCENT), "passed"])
TABLES = {
    "scapesim.run": RUNS, "scapesim.run-set": RUNS, "scapesim.scale": RUNS, "scapesim.sweep": [sweep],
    "scapesim.validation": [CHECKS, of("Groups", "groups", ["method", "metric", "rows", ("mean error %", "mean_error", PERCENT),
                                                            ("worst %", "worst_error", PERCENT)]),
                            of("Rows", "rows", ["model", "series", "gpus", "metric", "measured", "predicted",
                                                ("error %", "error", PERCENT)], False)],
    "scapesim.scores": [CHECKS, of("Groups", "groups", ["by", "name", "rows", ("median error %", "median_error", PERCENT),
                                                        ("90th percentile %", "p90_error", PERCENT), ("bias %", "bias", PERCENT),
                                                        ("in interval %", "in_interval", PERCENT), "infeasible"]),
                        of("Rows", "rows", ["row", "source", "model", "gpu", "gpus", "method", "metric", "measured", "predicted",
                                            ("error %", "error", PERCENT), "octaves_outside", "calibration", "reason"], False)],
    "scapesim.explain": [of("Parts", "terms", ["name", "predicted_s", "measured_s", "cause"])],
    "scapesim.collective": [of("Measured", "measured", [("size B", "size_B", 1), ("measured us", "time_s", 1e6),
                                                        ("predicted us", "predicted_s", 1e6), ("busbw GB/s", "busbw_Bps", 1e-9),
                                                        ("error %", "error", PERCENT)]),
                            of("Predicted", "rows", [("size B", "size_B", 1), ("us", "time_s", 1e6),
                                                     ("algbw GB/s", "algbw_Bps", 1e-9), ("busbw GB/s", "busbw_Bps", 1e-9),
                                                     "algorithm", "protocol"])],
    "scapesim.calibration": [gaps, fits], "scapesim.profile": [numbers],
    "scapesim.compare": [terms, changed], "scapesim.search": [plans, of("Why the others lose", "losers", [
        "lost", "reason", "splits", ("fastest s", "fastest/step_time_s", 1)])],
    "scapesim.plan": [of("Plans", "plans", [
        "cluster", "gpus", ("tp", "split/tp", 1), ("pp", "split/pp", 1), ("dp", "split/dp", 1), ("micro-batch", "split/micro_batch", 1),
        ("step s", "step_time_s", 1), ("MFU %", "mfu", PERCENT), ("days", "time_s", 1 / 86400), ("GPU-hours", "gpu_hours", 1),
        ("cost USD", "cost_usd", 1), "pareto", "meets", "infeasible"])],
    "scapesim.breakeven": [of("Series", "rows", ["series", "step_time_s", "tokens_to_loss", "time_to_loss_ratio",
                                                 ("pays on networks", "network/verdict", 1), ("pays on GPUs", "gpus/verdict", 1)])],
}
for kind in ("scapesim.sensitivity", "scapesim.sensitivity-set"):
    TABLES[kind] = [
        lambda document: plain_table("Parameters", series_rows("parameters")(document), [
            "series", "name", "kind", "value", "unit", ("less: step s", "step_time_less_s", 1),
            ("more: step s", "step_time_more_s", 1), "elasticity"]),
        lambda document: plain_table("Alternatives", series_rows("alternatives")(document), [
            "series", "key", "from", "to", ("step s", "step_time_s", 1), "tokens_ratio", "infeasible"], shown=False)]


def tables_of(result):
    tables = [table(result.document) for table in TABLES.get(result.kind, [])]
    return [table for table in tables if table.cells]
