# SPDX-License-Identifier: Apache-2.0
"""JSON Schema (draft 2020-12) as far as reports/schemas/ uses it: a keyword that is not here is an error, not ignored."""

import json
import pathlib
import re

FOLDER = pathlib.Path("reports/schemas")
ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name in ("number", "integer"):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and (name == "number" or value == int(value))
    return isinstance(value, TYPES[name])


class Checker:
    def __init__(self):
        self.documents = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}

    def problems(self, value, name):
        """What is wrong with the value by the schema of this name, as "/path: what" lines."""
        return list(self.walk(value, self.documents[name + ".json"], name + ".json", ""))

    def resolved(self, reference, document):
        file, _, pointer = reference.partition("#")
        file = file or document
        schema = self.documents[file]
        for part in pointer.strip("/").split("/") if pointer else []:
            schema = schema[part]
        return schema, file

    def walk(self, value, schema, document, path):
        for keyword, wanted in schema.items():
            if keyword in ANNOTATIONS:
                continue
            rule = getattr(self, "rule_" + keyword.strip("$"), None)
            if rule is None:
                raise ValueError(f"{document}: keyword {keyword} is not implemented")
            yield from rule(value, wanted, schema, document, path)

    def rule_ref(self, value, wanted, schema, document, path):
        yield from self.walk(value, *self.resolved(wanted, document), path)

    def rule_anyOf(self, value, wanted, schema, document, path):
        found = [list(self.walk(value, one, document, path)) for one in wanted]
        if all(found):
            yield from min(found, key=len)

    def rule_type(self, value, wanted, schema, document, path):
        names = wanted if isinstance(wanted, list) else [wanted]
        if not any(is_type(value, name) for name in names):
            yield f"{path}: {json.dumps(value)[:60]} is not {' or '.join(names)}"

    def rule_const(self, value, wanted, schema, document, path):
        if value != wanted:
            yield f"{path}: {json.dumps(value)[:60]} is not {wanted}"

    def rule_enum(self, value, wanted, schema, document, path):
        if value not in wanted:
            yield f"{path}: {json.dumps(value)[:60]} is not one of {wanted}"

    def rule_minimum(self, value, wanted, schema, document, path):
        if is_type(value, "number") and value < wanted:
            yield f"{path}: {value} is below {wanted}"

    def rule_maximum(self, value, wanted, schema, document, path):
        if is_type(value, "number") and value > wanted:
            yield f"{path}: {value} is above {wanted}"

    def rule_pattern(self, value, wanted, schema, document, path):
        if isinstance(value, str) and not re.search(wanted, value):
            yield f"{path}: {value} does not match {wanted}"

    def rule_required(self, value, wanted, schema, document, path):
        if isinstance(value, dict):
            for key in wanted:
                if key not in value:
                    yield f"{path}: {key} is missing"

    def rule_properties(self, value, wanted, schema, document, path):
        if isinstance(value, dict):
            for key, inner in wanted.items():
                if key in value:
                    yield from self.walk(value[key], inner, document, f"{path}/{key}")

    def rule_additionalProperties(self, value, wanted, schema, document, path):
        if isinstance(value, dict):
            for key in value.keys() - schema.get("properties", {}).keys():
                yield from self.walk(value[key], wanted, document, f"{path}/{key}")

    def rule_minProperties(self, value, wanted, schema, document, path):
        if isinstance(value, dict) and len(value) < wanted:
            yield f"{path}: fewer than {wanted} keys"

    def rule_items(self, value, wanted, schema, document, path):
        if isinstance(value, list):
            for i, item in enumerate(value):
                yield from self.walk(item, wanted, document, f"{path}/{i}")

    def rule_minItems(self, value, wanted, schema, document, path):
        if isinstance(value, list) and len(value) < wanted:
            yield f"{path}: fewer than {wanted} items"
