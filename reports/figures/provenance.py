# SPDX-License-Identifier: Apache-2.0
"""What a result rests on: the corner of its figures, the scenario's text, the numbers of its calibration."""

from figures.results import runs_of
from figures.tables import Table, key


def rests_on(document):
    """(calibrations with weakest provenance, versions), each once."""
    runs = runs_of(document) if document["schema"].startswith(("scapesim.run", "scapesim.scale")) else [document]
    calibrations, versions = {}, {}
    for run in runs:
        calibration = run.get("calibration")
        if isinstance(calibration, dict):
            calibrations[f"{calibration['id']} (weakest: {calibration['weakest_provenance']})"] = True
        elif isinstance(calibration, str):
            calibrations[calibration] = True
        if "version" in run:
            versions[f"scapesim {run['version']}"] = True
    return list(calibrations), list(versions)


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
