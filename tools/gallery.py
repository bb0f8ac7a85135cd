"""Run the examples of the gallery and write their pages: docs/gallery/, with the pictures in docs/images/gallery/.

`make gallery`, or `python tools/gallery.py NAME …` for some of them. A page is the cells of its example with what each
printed and drew. `make generate` writes new texts and code into pages that exist and keeps what was printed.
"""

import contextlib
import io
import os
import re
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("[0-9]*.py"))
PAGES = ROOT / "docs" / "gallery"
PICTURES = ROOT / "docs" / "images" / "gallery"
MOST_BYTES = 150_000
SAVED = re.compile(r'^save\(figure, "(\w+)"\)', re.M)  # the pictures of a cell


def cells(text: str) -> list[tuple[str, str]]:
    """("markdown" or "code", source) for every cell of a script in the percent format."""
    parsed = []
    for part in re.split(r"^# %%", text, flags=re.M)[1:]:
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            parsed.append(("markdown", re.sub(r"^# ?", "", body.strip(), flags=re.M)))
        else:
            parsed.append(("code", body.strip()))
    return parsed


def run(script: Path) -> list[str]:
    """What every code cell printed."""
    sys.path.insert(0, str(script.parent))
    scope: dict = {"__name__": "__main__", "__file__": str(script)}
    outputs = []
    for kind, source in cells(script.read_text(encoding="utf-8")):
        if kind == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                exec(compile(source, str(script), "exec"), scope)
            outputs.append(printed.getvalue().rstrip())
    return outputs


def page(script: Path, results: list[str]) -> str:
    """The page of an example, given what its code cells printed."""
    name = f"examples/gallery/{script.name}"
    head = f"<!-- written by `python tools/gallery.py {script.stem}` -->\n\n"
    parts, outputs = [], iter(results)
    for kind, source in cells(script.read_text(encoding="utf-8")):
        if kind == "markdown":
            parts.append(source)
            continue
        printed = next(outputs)
        parts.append(f"```py\n{source}\n```")
        if printed:
            parts.append(f"```text\n{printed}\n```")
        parts += [f"![{title(script)}](../images/gallery/{name}.png)" for name in SAVED.findall(source)]
    parts.append(f"*Made by `make gallery` from `{name}`; `python {name}` runs it alone.*")
    return head + "\n\n".join(parts) + "\n"


def printed_before(script: Path) -> list[str]:
    """What a page already shows as printed, code cell by code cell."""
    text = (PAGES / f"{script.stem}.md").read_text(encoding="utf-8")
    outputs = []
    for part in re.split(r"^```py\n", text, flags=re.M)[1:]:
        rest = part.partition("\n```\n")[2]
        printed = re.match(r"\n```text\n(.*?)\n```\n", rest, re.S)
        outputs.append(printed[1] if printed else "")
    return outputs


def title(script: Path) -> str:
    return cells(script.read_text(encoding="utf-8"))[0][1].partition("\n")[0].lstrip("# ")


def index() -> str:
    """The first page: a picture and a link for every example that has a page."""
    text = (
        "<!-- written by `python tools/gallery.py` -->\n\n# Gallery\n\nShort programs, each about one idea, with what"
        " they print and draw. They were run on two CPU cores, most of them in less than half a minute."
        " `size(full, smoke)` in them is a number for the picture and a tiny one for the tests."
        " `make gallery` runs them all. They illustrate and do not measure: sizes, priors and seeds are those at which"
        " a picture shows its point.\n"
    )
    for script in SCRIPTS:
        if (PAGES / f"{script.stem}.md").exists():
            picture = SAVED.findall(script.read_text(encoding="utf-8"))[0]
            text += f"\n## [{title(script)}]({script.stem}.md)\n\n![{title(script)}](../images/gallery/{picture}.png)\n"
    return text


def pages() -> dict[Path, str]:
    """The pages with the texts and the code of now, and what was printed then."""
    scripts = {PAGES / f"{script.stem}.md": script for script in SCRIPTS}
    texts = {path: page(script, printed_before(script)) for path, script in scripts.items() if path.exists()}
    return texts | {PAGES / "index.md": index()}


def main(names: list[str]) -> int:
    """Write the pages of the examples that are named, or of all."""
    os.environ["CREDO_GALLERY_OUT"] = str(PICTURES)
    PAGES.mkdir(parents=True, exist_ok=True)
    for script in SCRIPTS:
        if names and script.stem not in names:
            continue
        began = time.perf_counter()
        (PAGES / f"{script.stem}.md").write_text(page(script, run(script)), encoding="utf-8")
        print(f"{script.stem}: {time.perf_counter() - began:.0f} s", flush=True)
    (PAGES / "index.md").write_text(index(), encoding="utf-8")
    large = [path.name for path in PICTURES.glob("*.png") if path.stat().st_size > MOST_BYTES]
    if large:
        print(f"Larger than {MOST_BYTES:,} bytes: {', '.join(large)}", file=sys.stderr)
    return int(bool(large))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
