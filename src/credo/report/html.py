"""The pieces of a page: sections, tables, figures and lists of sentences, with every text escaped."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template

from matplotlib.figure import Figure

from credo.report.style import WIDE
from credo.report.svg import inline_svg

SCRIPTS = ("scale", "drawing", "reading", "box", "touch", "plot")


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it; `body` is HTML, made by the functions of this file."""

    title: str
    body: str
    level: int = 2
    anchor: str = ""


def page(title: str, sections: Sequence[Section], subtitle: str = "") -> str:
    """One self-contained HTML page.

    Args:
        title: heading of the page, plain text.
        sections: in order.
        subtitle: a line under the heading, plain text.
    """
    body = "\n".join(_section(section) for section in sections)
    script = _script() if "application/json" in body else ""
    return _template("page.html").substitute(
        title=escape(title),
        subtitle=f"<p class='subtitle'>{escape(subtitle)}</p>" if subtitle else "",
        style=_text("templates/style.css"),
        policy=_policy(script),
        hint=_text("templates/hint.html") if script else "",
        body=body,
        script=f"<script>{script}</script>" if script else "",
    )


def _script() -> str:
    """The script of all plots; one function, so that it leaves no names behind."""
    parts = "\n".join(_text(f"assets/{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}}})();\n'


def _policy(script: str) -> str:
    """What a browser may do with the page: load nothing, and run this one script, whatever names a table has."""
    digest = b64encode(sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if script else "'none'"
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"


def _section(section: Section) -> str:
    anchor = f' id="{escape(section.anchor)}"' if section.anchor else ""
    return _template("section.html").substitute(
        level=section.level, title=escape(section.title), body=section.body, anchor=anchor
    )


def paragraphs(sentences: Iterable[str]) -> str:
    """One paragraph of sentences."""
    return f"<p>{' '.join(escape(s) for s in sentences)}</p>"


def bullets(sentences: Iterable[str]) -> str:
    """A list of sentences."""
    return "<ul>" + "".join(f"<li>{escape(s)}</li>" for s in sentences) + "</ul>"


def links(names: Mapping[str, str]) -> str:
    """A list of links within the page, anchor → text."""
    items = (f'<li><a href="#{escape(a)}">{escape(t)}</a></li>' for a, t in names.items())
    return f"<ul class='links'>{''.join(items)}</ul>"


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = False, best: Iterable[tuple[int, int]] = ()
) -> str:
    """A table with a heading row; the first column names the row.

    Args:
        head: headings.
        rows: texts.
        numbers: align all but the first column to the right.
        best: (row, column) of cells to stress.
    """
    stressed = set(best)
    top = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    body = []
    for i, row in enumerate(rows):
        cells = [f'<th scope="row">{escape(row[0])}</th>']
        for j, text in enumerate(row[1:], start=1):
            inner = f"<strong>{escape(text)}</strong>" if (i, j) in stressed else escape(text)
            cells.append(f"<td>{inner}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    kind = ' class="numbers"' if numbers else ""
    return f"<div class='scroll'><table{kind}><thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"


def gallery(figures: Mapping[str, Figure], captions: Mapping[str, str], prefix: str) -> str:
    """Figures side by side where there is room, each with its caption.

    Args:
        given: name → figure.
        captions: name → plain text.
        prefix: makes names unique within the page.
    """
    parts = []
    for name, figure in figures.items():
        wide = " class='wide'" if figure.get_figwidth() >= WIDE[0] else ""
        caption = captions.get(name.rstrip("_0123456789"), "")
        parts.append(
            _template("figure.html").substitute(
                wide=wide, image=inline_svg(figure, f"{prefix}-{name}"), caption=escape(caption)
            )
        )
    return f"<div class='gallery'>{''.join(parts)}</div>"


def _text(name: str) -> str:
    return files("credo.report").joinpath(name).read_text(encoding="utf-8")


def _template(name: str) -> Template:
    return Template(_text(f"templates/{name}"))
