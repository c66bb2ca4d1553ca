# SPDX-License-Identifier: Apache-2.0
"""Where a document departs from its schema in reports/schemas/: values of the wrong kind, keys that are missing.

Kinds are checked of every file. Keys are checked only when a figure could not be drawn: what an older scapesim wrote lacks
keys that came later, and is drawn all the same.
"""

import json
import pathlib
from functools import lru_cache

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "schemas"
MOST = 20  # problems of one file that are told
KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
NAMES = {"object": "an object", "array": "a list", "string": "text", "boolean": "true or false", "null": "null",
         "number": "a number", "integer": "a whole number"}


@lru_cache(maxsize=None)
def schema_of(file):
    return json.loads((FOLDER / file).read_text(encoding="utf-8"))


def resolved(schema, file):
    """The schema that a $ref names, and the file it stands in."""
    while "$ref" in schema:
        name, _, path = schema["$ref"].partition("#")
        file = name or file
        schema = schema_of(file)
        for step in filter(None, path.split("/")):
            schema = schema[step]
    return schema, file


def is_kind(value, kind):
    if kind in ("number", "integer"):
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return not isinstance(value, bool) and (whole if kind == "integer" else isinstance(value, (int, float)))
    return isinstance(value, KINDS[kind])


def kind_of(value):
    return next(name for kind, name in NAMES.items() if is_kind(value, kind))


def known_keys(value, schema):
    return len(schema.get("properties", {}).keys() & value.keys()) if isinstance(value, dict) else 0


def departures(value, schema, file, where=""):
    """("kind" or "missing", key, what is wrong), outermost first."""
    schema, file = resolved(schema, file)
    if "anyOf" in schema:
        options = [resolved(option, file) for option in schema["anyOf"]]
        yield from departures(value, *max(options, key=lambda option: known_keys(value, option[0])), where)
        return
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_kind(value, kind) for kind in kinds):
        yield "kind", where, f"is {kind_of(value)}, not {' or '.join(NAMES[kind] for kind in kinds)}"
        return
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        for key in schema.get("required", []):
            if key not in value:
                yield "missing", f"{where}.{key}".lstrip("."), "is missing"
        for key, part in value.items():
            inner = known.get(key, others if isinstance(others, dict) else {})
            yield from departures(part, inner, file, f"{where}.{key}".lstrip("."))
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from departures(part, schema.get("items", {}), file, f"{where}[{i}]")


def problems(path, kind, document, sort, first=None):
    """Lines on departures of a sort ("kind" or "missing") of a document read from `path`; of JSON lines with the line.

    Those on the key `first` come first.
    """
    file = kind.rpartition(".")[2] + ".json"
    if not (FOLDER / file).exists():
        return []
    lines = kind == "scapesim.sweep"
    parts = [(f"{path}:{i}", point) for i, point in enumerate(document["points"], 1)] if lines else [(path, document)]
    found = [(key.rpartition(".")[2] != first, f"{place}: {key or 'the document'}: {what}") for place, part in parts
             for kind_found, key, what in departures(part, schema_of(file), file) if kind_found == sort]
    found = [line for _, line in sorted(found, key=lambda pair: pair[0])]
    more = [f"{path}: {len(found) - MOST} further problems"] if len(found) > MOST else []
    hint = " (the file was changed or cut: write the result again with --json or --result)"
    return [line + hint for line in found[:MOST]] + more
