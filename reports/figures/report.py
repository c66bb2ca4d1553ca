# SPDX-License-Identifier: Apache-2.0
"""Results -> figures and a page in a folder. All is drawn before the first file is replaced."""

import contextlib
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
    """Raises BadResult where the document lacks what its figures show."""
    try:
        return section_of_whole(result, formats, date)
    except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise results.damaged(result, error) from error


def section_of_whole(result, formats, date):
    corner = provenance.corner(result.document, date)
    return Section(result, catalogue.title_of(result), corner, list(drawn_figures(result, formats, corner)),
                   warnings_of(result.document), provenance.sources(result.document), provenance.sheets(result.document))


def write(files):
    """All files, {path: content}, or what was there before. Raises BadResult when a folder takes none."""
    temporaries = {path: path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in files}
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporaries[path].write_bytes(content)
        for path, temporary in temporaries.items():
            os.replace(temporary, path)
    except OSError as error:
        raise results.BadResult(f"{error.filename or path}: cannot be written: {error.strerror} (name a folder that can be "
                                "written)") from error
    finally:
        for temporary in temporaries.values():
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def sections_of(loaded, formats, date):
    """A section per result. Raises BadResult with the problems of all."""
    sections, problems = [], []
    for result in loaded:
        try:
            sections.append(section_of(result, formats, date))
        except results.BadResult as error:
            problems.append(str(error))
    if problems:
        raise results.BadResult("\n".join(problems))
    return sections


def report(loaded, folder, formats, date):
    """Draws everything, then writes it. The names of the files, the page last."""
    sections = sections_of(loaded, formats, date)
    title = sections[0].title if len(sections) == 1 else "scapesim report"
    html = page.page(title, sections, ", ".join(filter(None, [date, f"{len(sections)} result{'s' * (len(sections) > 1)}"])))
    files = {f"{drawn.name}.{kind}": content for section in sections for drawn in section.figures
             for kind, content in drawn.files.items()}
    files["index.html"] = html.encode("utf-8", "replace")
    write({pathlib.Path(folder) / name: content for name, content in files.items()})
    return list(files)
