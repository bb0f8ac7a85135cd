"""Write all that is made from code: public names of the registry, the API reference, tables, texts of the gallery.

`make generate` runs it after a change of public or renamed names, of the registry or of an example. With `--check` it
writes nothing, names the stale pages and fails.
"""

import sys
from pathlib import Path

import api_pages
import gallery
import methods_page
import offers_page
import public_names
import readme_table
import renamed_table

ROOT = Path(__file__).resolve().parents[1]
MAKERS = (public_names, api_pages, methods_page, offers_page, readme_table, renamed_table, gallery)
FOLDERS = (api_pages.PAGES, gallery.PAGES)  # every page in them is made


def stale() -> dict[Path, str | None]:
    """What a page should be where it is not; None for a page that should not be."""
    pages = {path: text for maker in MAKERS for path, text in maker.pages().items()}
    left_over = {path: None for folder in FOLDERS for path in folder.glob("*.md") if path not in pages}
    old = {path: path.read_text(encoding="utf-8") for path in pages if path.exists()}
    return left_over | {path: text for path, text in pages.items() if old.get(path) != text}


def write(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink()
    else:
        path.write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Write what is stale, or only name it."""
    check = "--check" in arguments
    for _ in range(1 if check else 2):  # the API reference reads the packages that the first round writes
        pages = stale()
        for path, text in pages.items():
            print(path.relative_to(ROOT))
            if not check:
                write(path, text)
    return int(check and bool(pages))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
