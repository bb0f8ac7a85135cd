"""Stars of formulas (x*, θ*) are not emphasis: GitHub knows that, the Markdown of the site has to be told."""

import re

PIECE = re.compile(r"`[^`]*`|\*+")
CODE = re.compile(r"^(?: {4}|\t|>>>)")


def escaped(text: str) -> str:
    """The text with a backslash before every star that neither opens nor closes emphasis; fences are left out."""
    parts = re.split(r"(^```.*?^```)", text, flags=re.M | re.S)
    for i in range(0, len(parts), 2):
        blocks = re.split(r"(\n[ \t]*\n)", parts[i])
        parts[i] = "".join(block if CODE.match(block) else _block(block) for block in blocks)
    return "".join(parts)


def _block(text: str) -> str:
    opened: list[str] = []

    def one(match: re.Match) -> str:
        run = match[0]
        if run[0] == "`":
            return run
        before = text[match.start() - 1] if match.start() else " "
        after = text[match.end()] if match.end() < len(text) else " "
        if opened and opened[-1] == run and not before.isspace():
            opened.pop()
        elif not after.isspace() and (before.isspace() or before in '(["|'):
            opened.append(run)
        else:
            return run.replace("*", r"\*")
        return run

    return PIECE.sub(one, text)
