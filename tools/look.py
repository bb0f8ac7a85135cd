"""Pictures of every page of the site at the widths of a desk and of a phone, for people to look at.

    make docs && python tools/look.py --out pictures [--pages index.html,methods/index.html] [--browser chromium]

Needs a Chromium. Pages that are wider than the screen are named, and the exit code is then 1: a phone would have to
scroll sideways.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
WIDTHS = {"desk": 1280, "phone": 375}
FLAGS = (
    "--headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --allow-file-access-from-files --virtual-time-budget=4000"
)
# A frame of the wanted width: a headless window is never narrower than 500 points.
FRAME = """<!doctype html><meta charset="utf-8"><style>body{{margin:0}}iframe{{border:0}}</style>
<iframe id="page" src="{page}" width="{width}" height="{height}"></iframe><p id="wide">?</p>
<script>onload = () => {{
  const own = document.getElementById("page").contentDocument.documentElement;
  document.getElementById("wide").textContent = "scroll " + own.scrollWidth + " of " + {width};
}}</script>"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--site", type=Path, default=ROOT / "site")
    parser.add_argument("--pages", help="with commas between; all if not given")
    parser.add_argument("--height", type=int, default=2400)
    parser.add_argument("--browser", default="chromium")
    options = parser.parse_args()
    built = sorted(str(p.relative_to(options.site)) for p in options.site.rglob("*.html") if p.name != "404.html")
    pages = options.pages.split(",") if options.pages else built
    missing = [page for page in pages if page not in built]
    if missing or not built:
        problem = (
            f"There is no page {', '.join(missing)} in {options.site}" if built else f"{options.site} has no pages"
        )
        print(f"{problem}: `make docs` builds the site.", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    wide = [line for page in pages for line in look(page, options)]
    print("\n".join([f"{len(pages)} pages, pictures in {options.out}", *wide]))
    return 1 if wide else 0


def look(page: str, options: argparse.Namespace) -> list[str]:
    """Take the pictures of one page; a line for each width at which it is too wide."""
    wide = []
    for name, width in WIDTHS.items():
        picture = options.out / f"{page.removesuffix('.html').replace('/', '-')}-{name}.png"
        with tempfile.TemporaryDirectory() as folder:
            frame = Path(folder) / "frame.html"
            address = (options.site / page).resolve().as_uri()
            frame.write_text(FRAME.format(page=address, width=width, height=options.height), encoding="utf-8")
            base = [options.browser, *FLAGS.split(), f"--user-data-dir={folder}", f"--window-size={max(width, 500)},"]
            base[-1] += str(options.height)
            dumped = subprocess.run([*base, "--dump-dom", frame.as_uri()], capture_output=True, text=True, check=True)
            shot = [*base, f"--screenshot={picture.resolve()}", frame.as_uri()]
            subprocess.run(shot, capture_output=True, check=True)
        match = re.search(r"scroll (\d+) of (\d+)", dumped.stdout)
        if match is None:
            wide.append(f"{page} at {width}: the browser gave no width")
        elif int(match[1]) > width:
            wide.append(f"{page} at {width}: {match[1]} wide")
    return wide


if __name__ == "__main__":
    sys.exit(main())
