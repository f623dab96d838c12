"""From the repository to a site: lay out all pages in one folder, write the navigation, run the generator strictly.

Nothing generated is committed: pages of claims and of the API are made from the code each time.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from website.claims import claim_pages
from website.links import moved_links
from website.navigation import navigation
from website.reference import reference_pages

ROOT = Path(__file__).resolve().parent.parent
#: Pages about the project, from where a reader of the repository looks for them.
PROJECT_PAGES = {
    "docs/architecture.md": "project/architecture.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
}
#: README itself is no page of the site; links to it lead to its section about installing.
INSTALL_PAGE = "tutorial/install.md"
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


class SiteError(Exception):
    """The site cannot be built without a warning; the message is the generator's."""


def build(out: Path) -> None:
    """Build the site into `out`, replacing what is there, or raise `SiteError` if there is anything to warn of."""
    with tempfile.TemporaryDirectory(prefix="attnaudit-site-") as name:
        stage = Path(name)
        shutil.copy(ROOT / "website" / "zensical.toml", stage)
        lay_out(stage / "docs")
        _generate(stage)
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(stage / "site", out)


def lay_out(folder: Path) -> None:
    """Every page, image and notebook of the site, as the generator wants them."""
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("*.py", "__pycache__", "architecture.md"))
    for source, target in PROJECT_PAGES.items():
        _write(folder / target, (ROOT / source).read_text())
    _write(folder / INSTALL_PAGE, section((ROOT / "README.md").read_text(), "Install"))
    places = {f"docs/{path.relative_to(folder)}": path for path in folder.rglob("*") if path.is_file()}
    del places[f"docs/{INSTALL_PAGE}"]
    places |= {source: folder / target for source, target in PROJECT_PAGES.items()}
    places["README.md"] = folder / INSTALL_PAGE
    for source, path in places.items():
        if path.suffix == ".md":
            _write(path, moved_links(path.read_text(), source, path, places))
    for name, text in (claim_pages(folder / "results") | reference_pages()).items():
        _write(folder / name, text)
    shutil.copy(ROOT / "website" / "site.css", folder)
    _write(folder / "SUMMARY.md", navigation(folder))


def section(page: str, heading: str) -> str:
    """A section of a page as a page of its own."""
    (text,) = re.findall(rf"^#(# {re.escape(heading)}\n.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return str(text)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _generate(stage: Path) -> None:
    search = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(stage / "zensical.toml")],
        env=os.environ | {"PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=False,
    )
    said = _COLOUR.sub("", done.stdout + done.stderr)
    if done.returncode or "warning" in said.lower():
        raise SiteError(said.partition("Traceback")[0].strip() or said)
