"""What `make docs` does beside MkDocs: pages of folders join the navigation, and files outside of docs/ join the site.

The pages of docs/ are also read where the repository is, so they link to files beside docs/. On the site such a
picture or page is a copy below repository/.
"""

import os
import re
import sys
from pathlib import Path, PurePosixPath

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).resolve().parent))

from site_stars import escaped

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FOLDERS = ("gallery", "api")  # their pages are generated: index.md says the order
LINK = re.compile(r"(\]\()([^)#\s]+)([^)]*\))")
FENCE = re.compile(r"(^```.*?^```)", re.M | re.S)
INCLUDE = re.compile(r"^<!-- measured -->$", re.M)


def on_config(config):
    """Put every page of a generated folder below its index."""
    for section in config.nav:
        for pages in section.values():
            folder = pages[0].partition("/")[0] if isinstance(pages, list) and isinstance(pages[0], str) else ""
            if folder in FOLDERS and pages == [f"{folder}/index.md"]:
                pages += listed(folder)
    return config


def listed(folder: str) -> list[dict[str, str]]:
    """Pages in the order in which the folder's index names them, under their headings."""
    text = (DOCS / folder / "index.md").read_text(encoding="utf-8")
    names = [name for name in re.findall(r"\]\(([\w.-]+\.md)\)", text) if name != "index.md"]
    return [{heading(DOCS / folder / name): f"{folder}/{name}"} for name in dict.fromkeys(names)]


def heading(path: Path) -> str:
    match = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.M)
    return match[1].replace("`", "") if match else path.stem


def on_files(files, config):
    """Add what pages link to outside of docs/."""
    for page in files.documentation_pages():
        text = Path(page.abs_src_path).read_text(encoding="utf-8")
        for _, link, _ in LINK.findall(text):
            target = outside(page.src_path, link)
            path = target and f"repository/{target.relative_to(ROOT).as_posix()}"
            if path and target.suffix != ".md" and path not in files.src_uris:
                files.append(File.generated(config, path, abs_src_path=str(target)))
    return files


def on_post_build(config):
    """The index of the search as a script, too: a page that was opened from a folder may read no data."""
    folder = Path(config.site_dir) / "search"
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index};\n", encoding="utf-8")


def on_page_markdown(markdown, page, config, files):
    """Rewrite links that leave docs/, and include what benchmarks have measured."""
    base = PurePosixPath(page.file.src_path).parent

    def rewrite(match):
        if match[2].startswith("measured/") and match[2].endswith(".md"):
            return f"{match[1]}#{anchor(match[2])}{match[3]}"
        target = outside(page.file.src_path, match[2])
        if target is None:
            return match[0]
        if target.suffix == ".md" or target.is_dir():  # pages that are not of the site: their name is enough
            return "]{" + match[2] + "}"
        path = f"repository/{target.relative_to(ROOT).as_posix()}"
        return f"{match[1]}{os.path.relpath(path, base)}{match[3]}"

    parts = FENCE.split(INCLUDE.sub(measured, markdown))
    parts[::2] = [LINK.sub(rewrite, part) for part in parts[::2]]
    # A number and its error stay on one line of their cell.
    text = re.sub(r"^\|.*$", lambda line: line[0].replace(" ± ", "\u00a0±\u00a0"), "".join(parts), flags=re.M)
    return escaped(re.sub(r"(?<!!)\[([^\]\n]*)\]\{([^}\s]+)\}", r"\1 (`\2`)", text))


def measured(match) -> str:
    """What benchmarks wrote to docs/measured/, headings one level lower; a sentence where there is nothing."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((DOCS / "measured").glob("*.md"))]
    if not texts:
        return "*Not measured yet: this place is filled by the benchmarks (`docs/measured/`).*"
    text = re.sub(r"^#", "##", "\n\n".join(texts), flags=re.M)
    return LINK.sub(lambda m: m[0] if "://" in m[2] else f"{m[1]}measured/{m[2]}{m[3]}", text)


def anchor(link: str) -> str:
    """Where a page of measurements is included: the identifier of its heading."""
    from markdown.extensions.toc import slugify

    return slugify(heading(DOCS / link), "-")


def outside(page: str, link: str) -> Path | None:
    """The file that a link of a page names, where it exists and lies outside of docs/."""
    if "://" in link or link.startswith("mailto:"):
        return None
    target = Path(os.path.normpath(DOCS / PurePosixPath(page).parent / link))
    inside = target == DOCS or DOCS in target.parents
    return target if not inside and ROOT in target.parents and target.exists() else None
