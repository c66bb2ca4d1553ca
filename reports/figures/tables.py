# SPDX-License-Identifier: Apache-2.0
"""Tables of the page: columns with their unit, cells as the result has them, to a few digits."""

from figures.results import infeasible_of, label_of, runs_of

MOST_ROWS = 5000  # of a table on the page; the file holds the rest
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


def digits(value):
    """Five significant digits without an exponent where that is short."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return str(int(value))
    if 1e-4 <= abs(value) < 1e9:
        return f"{value:.{max(0, 5 - len(str(int(abs(value)))))}f}" if abs(value) >= 1 else f"{value:.4g}"
    return f"{value:.4g}"


def key(*names, scale=1):
    """Reads nested keys; None where one is missing."""
    def read(row):
        for name in names:
            row = row.get(name) if isinstance(row, dict) else None
        return row if row is None or scale == 1 else row * scale
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


RUNS = [infeasible, points, against, parts, exchanges]
TABLES = {"scapesim.run": RUNS, "scapesim.run-set": RUNS, "scapesim.scale": RUNS}


def tables_of(result):
    tables = [table(result.document) for table in TABLES.get(result.kind, [])]
    return [table for table in tables if table.cells]
