# SPDX-License-Identifier: Apache-2.0
"""What a result rests on: the corner of its figures, the scenario's text, the numbers of its calibration."""

from figures.tables import Table, key


def identities(document):
    """Every part of a document that may name a calibration and a version."""
    yield document
    for key in ("points", "runs", "plans", "columns", "series", "rows"):
        for part in document.get(key) or []:
            if isinstance(part, dict):
                yield part.get("run", part)


def rests_on(document):
    """(calibrations with their weakest provenance, versions), each once."""
    calibrations, versions = {}, {}
    if document["schema"].startswith("scapesim.profile"):
        return [document["id"]], []
    for part in identities(document):
        calibration, weakest = part.get("calibration"), part.get("weakest_provenance")
        if isinstance(calibration, dict):
            calibration, weakest = calibration["id"], calibration["weakest_provenance"]
        if calibration:
            calibrations.setdefault(calibration, {}).setdefault(weakest, True)
        if part.get("version"):
            versions[f"scapesim {part['version']}"] = True
    order = ["assumed", "datasheet", "published", "imported", "measured"]
    names = []
    for calibration, found in calibrations.items():
        weakest = min((w for w in found if w), key=order.index, default=None)
        names.append(f"{calibration} (weakest: {weakest})" if weakest else calibration)
    return names, list(versions)


def corner(document, date):
    calibrations, versions = rests_on(document)
    shown = calibrations if len(calibrations) <= 2 else [f"{len(calibrations)} calibrations, see the page"]
    return ", ".join([*shown, *([date] if date else []), *versions])


def sources(document):
    """(title, text) of the scenario as the result holds it."""
    source = document.get("sources", {}).get("scenario")
    if not source:
        return []
    changes = "".join(f"# --set {change}\n" for change in source.get("set", []))
    return [(f"Scenario {source['file']}", changes + source["text"])]


def sheets(document):
    """Numbers of the calibration behind a result, weakest first as the result lists them."""
    rows = document.get("sources", {}).get("calibration", [])
    if not rows:
        return []
    return [Table("Provenance of the numbers used", [
        ("calibration", key("calibration")), ("key", key("key")), ("kind", key("kind")), ("value", key("value")),
        ("low", key("low")), ("high", key("high")), ("provenance", key("provenance")), ("source", key("source"))],
        rows, shown=False)]
