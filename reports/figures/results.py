# SPDX-License-Identifier: Apache-2.0
"""Reads result files: JSON of scapesim commands, profiles, and JSON lines of scapesim-bench.

Says what is wrong with every file at once. Needs no library beyond Python's own.
"""

import difflib
import json
import pathlib

from figures import conform

# Schema without its version, the version that is read, and what it is called on a page.
SCHEMAS = {
    "scapesim.run": (1, "step"), "scapesim.run-set": (1, "steps side by side"), "scapesim.scale": (1, "scaling"),
    "scapesim.collective": (1, "collective"), "scapesim.validation": (1, "validation"),
    "scapesim.scores": (1, "measured runs"), "scapesim.explain": (1, "a measured step"),
    "scapesim.profile": (1, "calibration"), "scapesim.calibration": (1, "fit"),
    "scapesim.sweep": (1, "sweep"), "scapesim.sensitivity": (1, "sensitivity"),
    "scapesim.sensitivity-set": (1, "sensitivity"), "scapesim.compare": (1, "comparison"), "scapesim.plan": (1, "plan"),
    "scapesim.breakeven": (1, "break-even"), "scapesim.search": (1, "search"),
}


class BadResult(Exception):
    """Problems of the input files, one a line."""


class Result:
    """A document with the file it came from; `name` begins the names of its figures."""

    def __init__(self, path, document):
        self.path = pathlib.Path(path)
        self.document = document
        self.kind = document["schema"].rpartition("/")[0]
        self.name = self.path.name.split(".")[0] or "result"

    @property
    def what(self):
        return SCHEMAS[self.kind][1]


def lines_of(path, text):
    """JSON lines as one document: {"schema", "points": [line, ...]}; a last line that was cut off does not count."""
    points = []
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        try:
            points.append(json.loads(line))
        except ValueError as error:
            if number == len(lines) and not text.endswith("\n"):
                break
            raise BadResult(f"{path}:{number}: not JSON: {error}") from error
    kinds = {str(point.get("schema")) if isinstance(point, dict) else "none" for point in points}
    if len(kinds) != 1:
        raise BadResult(f"{path}: {'holds no line' if not kinds else 'lines of several schemas: ' + ', '.join(sorted(kinds))}")
    return {"schema": points[0].get("schema"), "points": points}


def parsed(path):
    """The document of one file, or of the results.jsonl of a sweep's folder. Raises BadResult."""
    file = pathlib.Path(path)
    if file.is_dir():
        file = file / "results.jsonl"
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise BadResult(f"{path}: cannot be read: {reason}") from error
    if file.suffix == ".jsonl":
        return lines_of(path, text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        line, column = getattr(error, "lineno", 1), getattr(error, "colno", 1)
        what = getattr(error, "msg", str(error))
        raise BadResult(f"{path}:{line}:{column}: not JSON: {what} (results are written with --json or --result)") from error


def checked(path, document):
    """The document as a Result. Raises BadResult when nothing here draws it."""
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str):
        hint = "; a trace is for ui.perfetto.dev" if isinstance(document, dict) and "traceEvents" in document else ""
        raise BadResult(f'{path}: "schema" is missing: not a result of scapesim{hint}')
    kind, _, version = schema.rpartition("/")
    if kind not in SCHEMAS:
        near = difflib.get_close_matches(kind or schema, SCHEMAS, 1)
        hint = f'did you mean "{near[0]}/{SCHEMAS[near[0]][0]}"?' if near else f"known: {', '.join(sorted(SCHEMAS))}"
        raise BadResult(f'{path}: schema: "{schema}" cannot be drawn ({hint})')
    if version != str(SCHEMAS[kind][0]):
        raise BadResult(f'{path}: schema: "{schema}" is another version than "{kind}/{SCHEMAS[kind][0]}", which is read here '
                        "(write the result again with this scapesim, or draw it with the one that wrote it)")
    if kind == "scapesim.sweep" and "points" not in document:
        raise BadResult(f"{path}: is a line of a sweep (name the folder of the sweep, or its results.jsonl)")
    problems = conform.problems(path, kind, document, "kind")
    if problems:
        raise BadResult("\n".join(problems))
    return Result(path, document)


def damaged(result, error):
    """What to say of a document that cannot be drawn: the keys it lacks; or, when it lacks none, the error."""
    first = error.args[0] if isinstance(error, KeyError) else None
    problems = conform.problems(result.path, result.kind, result.document, "missing", first)
    if problems:
        return BadResult("\n".join(problems))
    return RuntimeError(f"{result.path}: {type(error).__name__}: {error}")


def load(paths):
    """A Result per file with names that differ. Raises BadResult with every problem."""
    results, problems = [], []
    for path in paths:
        try:
            results.append(checked(path, parsed(path)))
        except BadResult as error:
            problems.append(str(error))
    if problems:
        raise BadResult("\n".join(problems))
    taken = set()
    for result in results:
        stem, count = result.name, 1
        while result.name in taken:
            count += 1
            result.name = f"{stem}-{count}"
        taken.add(result.name)
    return results


def runs_of(document):
    """The feasible runs of a run, run-set or scale document, in its order."""
    points = document.get("points", document.get("runs", [document]))
    return [point for point in points if "infeasible" not in point]


def infeasible_of(document):
    """(name, reason, hint) of every point that does not fit."""
    points = document.get("points", document.get("runs", [document]))
    return [(f"{label_of(point)} on {point['gpus']} GPUs" if "gpus" in point else "the plan",
             point["infeasible"]["reason"], point["infeasible"]["hint"]) for point in points if "infeasible" in point]


def label_of(run):
    return run.get("series", run["scenario"]["name"])


def series_of(document):
    """{series: [run, ...]}, counts ascending."""
    series = {}
    for run in runs_of(document):
        series.setdefault(label_of(run), []).append(run)
    return {name: sorted(runs, key=lambda run: run["gpus"]) for name, runs in series.items()}
