#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws result files of scapesim: a folder with figures and one page, or single figures.

report.py RESULT... -o DIR [--formats png,svg,pdf] [--date 2026-01-31]
report.py RESULT --figure NAME=FILE [--figure NAME=FILE]
Exit codes: 0 done, 1 not drawn, 2 bad input, 3 this Python has no matplotlib.
"""

import argparse
import datetime
import pathlib
import sys
import warnings

from figures import results


def arguments_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", metavar="RESULT", help="JSON that scapesim wrote")
    parser.add_argument("-o", "--output", metavar="DIR", help="folder for figures and index.html")
    parser.add_argument("--formats", default="png,svg,pdf")
    parser.add_argument("--date", default="", help="shown in the corner")
    parser.add_argument("--figure", action="append", default=[], metavar="NAME=FILE", help="one figure (.png, .pdf, .svg)")
    options = parser.parse_args(arguments)
    if bool(options.output) == bool(options.figure):
        parser.error("either -o or --figure")
    return options


def check_date(text):
    """Raises BadResult unless this is a day of the calendar, or nothing."""
    try:
        text == "" or datetime.date.fromisoformat(text)
    except ValueError as error:
        raise results.BadResult(f'--date: "{text}" is no day of the calendar (2026-01-31, today or none)') from error


def draw_one(report, loaded, name, path, date):
    from figures import catalogue, provenance, style
    row = next((row for row in catalogue.rows_of(loaded.kind) if row.name == name), None)
    figure = row.draw(loaded.document) if row else None
    if figure is None:
        raise results.BadResult(f"{loaded.path}: has no figure {name}")
    style.finish(figure, provenance.corner(loaded.document, date))
    report.write({path: report.rendered(figure, path.suffix[1:].lower())})


def draw(options):
    """Names of what was written."""
    check_date(options.date)
    loaded = results.load(options.results)
    from figures import report
    if options.output:
        names = report.report(loaded, options.output, options.formats.split(","), options.date)
        return [f"{pathlib.Path(options.output) / 'index.html'} and {len(names) - 1} figure files"]
    figures = [figure.split("=", 1) for figure in options.figure]
    for name, path in figures:
        draw_one(report, loaded[0], name, pathlib.Path(path), options.date)
    return [path for _, path in figures]


def main(arguments=None):
    options = arguments_of(arguments)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            written = draw(options)
    except results.BadResult as error:
        print(error, file=sys.stderr)
        return 2
    except ImportError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 3
    except Exception as error:  # whatever a library does, it is one line
        print(f"{type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    if any("missing from" in str(one.message) for one in told):
        print("warning: the font of the figures lacks characters of some names")
    print(f"drawn: {', '.join(written)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
