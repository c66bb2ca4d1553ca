# SPDX-License-Identifier: Apache-2.0
"""One HTML page of results that needs nothing else: figures inside, tables that sort, no network."""

import html
import pathlib
import re

from figures.style import GREY, INK, PAPER
from figures.tables import digits, tables_of

FOLDER = pathlib.Path(__file__).parent


def escaped(text):
    return html.escape(str(text), quote=True)


def inline_svg(svg, prefix, caption):
    """The <svg> element with ids of its own, in the page's ink and paper."""
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r'(xlink:href="|url\()#', rf"\1#{prefix}", svg)
    svg = svg.replace(INK, "currentColor").replace(PAPER, "var(--card)").replace(GREY, "var(--soft)")
    svg = re.sub(r'<svg([^>]*?) (?:width|height)="[^"]*pt"', r"<svg\1", svg, count=1)
    svg = re.sub(r'<svg([^>]*?) (?:width|height)="[^"]*pt"', r"<svg\1", svg, count=1)
    return re.sub(r"\n\s*", "\n", svg).replace("<svg ", f'<svg role="img" aria-label="{escaped(caption)}" ', 1)


def figure_html(drawn):
    wide = ' class="wide"' if drawn.wide else ""
    return (f'<figure id="{escaped(drawn.name)}"{wide}>{inline_svg(drawn.svg, drawn.name + "-", drawn.caption)}'
            f"<figcaption>{escaped(drawn.caption)}</figcaption></figure>")


def table_html(table):
    shown = [i for i in range(len(table.headings)) if i not in table.empty_columns]
    text = [' class="t"' if table.is_text(i) else "" for i in range(len(table.headings))]
    head = "".join(f"<th scope=col{text[i]}><button type=button>{escaped(table.headings[i])}</button></th>" for i in shown)
    body = "\n".join("<tr>" + "".join(
        f"<td{text[i]}>{escaped(row[i]) if isinstance(row[i], str) else digits(row[i])}</td>" for i in shown) + "</tr>"
        for row in table.cells)
    tall = " tall" if len(table.cells) > 25 else ""
    note = f'<p class="soft">{table.left_out} further rows are in the result file.</p>' if table.left_out else ""
    inner = f'<div class="scroll{tall}" tabindex=0><table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>{note}'
    if table.shown:
        return f"<h3>{escaped(table.title)}</h3>{inner}"
    return f"<details><summary>{escaped(table.title)}</summary>{inner}</details>"


def warning_html(messages):
    """The most frequent message of a code, the others folded away."""
    (first, count), *others = messages.most_common()
    times = f' <span class="soft">({count} times)</span>' if count > 1 else ""
    more = "".join(f"<li>{escaped(text)}</li>" for text, _ in others)
    return (f"<li>{escaped(first)}{times}" +
            (f"<details><summary>{len(others)} more like it</summary><ul>{more}</ul></details>" if more else "") + "</li>")


def warnings_html(warnings):
    if not warnings:
        return ""
    items = "".join(warning_html(messages) for messages in warnings.values())
    return f'<h3>Warnings</h3><ul class="warnings">{items}</ul>'


def source_html(title, text):
    return f"<details><summary>{escaped(title)}</summary><pre>{escaped(text)}</pre></details>"


def section_html(section):
    result = section.result
    figures = "".join(figure_html(drawn) for drawn in section.figures if drawn.on_page)
    parts = [f'<section id="{escaped(result.name)}"><h2>{escaped(section.title)}</h2>',
             f'<p class="soft">{escaped(result.what)}, {escaped(result.path.name)}; {escaped(section.corner)}</p>']
    if figures:
        parts.append(f'<div class="figures">{figures}</div>')
    parts += [warnings_html(section.warnings), *[table_html(table) for table in tables_of(result)]]
    parts += [source_html(title, text) for title, text in section.sources]
    parts += [table_html(table) for table in section.provenance]
    return "\n".join(parts) + "</section>"


def page(title, sections, subtitle):
    """The whole document. The policy forbids the browser to load anything."""
    links = "".join(f'<li><a href="#{escaped(s.result.name)}">{escaped(s.title)}</a></li>' for s in sections)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>{escaped(title)}</title>
<style>
{(FOLDER / "page.css").read_text(encoding="utf-8")}</style></head>
<body><header><button id="theme" type="button">light / dark</button>
<h1>{escaped(title)}</h1><p class="soft">{escaped(subtitle)}</p>
{f"<nav><ul>{links}</ul></nav>" if len(sections) > 1 else ""}</header>
<main>
{"".join(section_html(section) for section in sections)}
</main>
<script>
{(FOLDER / "page.js").read_text(encoding="utf-8")}</script>
</body></html>
"""
