# SPDX-License-Identifier: Apache-2.0
"""Results -> figures and a page in a folder. All is drawn before the first file is replaced."""

import io
import os
import pathlib
from collections import Counter, namedtuple

from figures import catalogue, page, provenance, results, style

FORMATS = ("png", "svg", "pdf")
DPI = 220

# `files` {format: bytes}; `svg` text for the page.
Drawn = namedtuple("Drawn", "name caption wide files svg on_page")
Section = namedtuple("Section", "result title corner figures warnings sources provenance")


def rendered(figure, kind):
    """Bytes of a figure. The same figure gives the same bytes: no date of drawing inside."""
    metadata = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}[kind]
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=DPI, metadata=metadata)
    return buffer.getvalue()


def drawn_figures(result, formats, corner):
    for row in catalogue.rows_of(result.kind):
        figure = row.draw(result.document)
        if figure is None:
            continue
        style.finish(figure, corner)
        svg = rendered(figure, "svg")
        files = {kind: svg if kind == "svg" else rendered(figure, kind) for kind in formats}
        yield Drawn(f"{result.name}-{row.name}", row.caption, figure.get_figwidth() > style.COLUMN + 1, files,
                    svg.decode("utf-8"), row.on_page)


def warnings_of(document):
    """{code: {message: how often}}, of the document and its parts; of a sweep the codes are all there is."""
    warnings = {}
    for part in provenance.identities(document):
        for warning in part.get("warnings") or []:
            code, message = (warning["code"], warning["message"]) if isinstance(warning, dict) else (warning, warning)
            warnings.setdefault(code, Counter())[message] += 1
    return warnings


def section_of(result, formats, date):
    corner = provenance.corner(result.document, date)
    return Section(result, catalogue.title_of(result), corner, list(drawn_figures(result, formats, corner)),
                   warnings_of(result.document), provenance.sources(result.document), provenance.sheets(result.document))


def write(path, content):
    """The whole file or what was there before."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def report(loaded, folder, formats, date):
    """Draws everything, then writes it. The names of the files, the page last."""
    sections = [section_of(result, formats, date) for result in loaded]
    title = sections[0].title if len(sections) == 1 else "scapesim report"
    html = page.page(title, sections, ", ".join(filter(None, [date, f"{len(sections)} result{'s' * (len(sections) > 1)}"])))
    files = {f"{drawn.name}.{kind}": content for section in sections for drawn in section.figures
             for kind, content in drawn.files.items()}
    files["index.html"] = html.encode("utf-8", "replace")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write(folder / name, content)
    return list(files)
