"""The site builds without a warning and without a network, and every link on it holds."""

import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from attnaudit.claims.registry import CLAIMS
from website import build as module
from website.build import SiteError, build
from website.navigation import navigation
from website.reference import PACKAGES

pytest.importorskip("zensical")


class Page(HTMLParser):
    """What a page loads, where it leads, and where one can go on it."""

    def __init__(self, path):
        super().__init__()
        self.loads, self.leads, self.anchors, self.text = [], [], set(), path.read_text()
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        self.anchors |= {known[name] for name in ("id", "name") if name in known}
        if tag == "a" and "href" in known:
            self.leads.append(known["href"])
        elif tag == "link" and "href" in known:
            self.loads.append(known["href"])
        elif tag in ("img", "script", "iframe", "source", "video") and "src" in known:
            self.loads.append(known["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; whoever asks for the network meets a closed door, and the build would warn."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            patch.setenv(name, "http://127.0.0.1:9")
        out = tmp_path_factory.mktemp("site") / "site"
        build(out)
    return out


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html")}


def test_nothing_is_loaded_from_elsewhere(site, pages):
    for path, page in pages.items():
        for address in page.loads:
            assert not urlsplit(address).netloc, f"{path.name} loads {address}"
    for path in site.rglob("*.css"):
        assert "url(http" not in path.read_text().replace('"', "").replace("'", ""), path.name


def test_every_link_and_anchor_of_the_site_holds(site, pages):
    for path, page in pages.items():
        if path.name == "404.html":  # it is served for any address, so its links begin at the root
            continue
        for address in (*page.loads, *page.leads):
            link = urlsplit(address)
            if link.scheme or link.netloc:
                continue
            target = (path.parent / unquote(link.path)).resolve() if link.path else path
            assert target.is_file(), f"{path.relative_to(site)} leads to {address}"
            if link.fragment and target in pages:
                assert unquote(link.fragment) in pages[target].anchors, f"{path.relative_to(site)} leads to {address}"


def test_every_claim_has_a_page_with_its_words(site, pages):
    for name, claim in CLAIMS.items():
        text = unescape(re.sub(r"<[^>]+>", "", pages[site / "claims" / f"{name}.html"].text))
        assert name in text
        for words in (*claim.decided_by, *claim.shown, claim.needs, claim.command, *claim.meanings.values()):
            assert words in text, (name, words)


def test_every_public_package_has_a_reference_with_its_docstrings(site, pages):
    for name in PACKAGES:
        assert "doc-contents" in pages[site / "api" / f"{name}.html"].text, name
    front = pages[site / "api" / "attnaudit.html"].text
    assert "Measure every attention head of one or more models" in front
    assert "how often each random reference is drawn" in front


def test_formulas_are_drawn_and_dollars_in_code_stay(site, pages):
    theory = pages[site / "theory" / "gaussian.html"].text
    assert theory.count("<math") > 50
    assert "\\tfrac" not in theory
    assert "$" not in theory.partition("<article")[2].partition("</article")[0]


def test_a_broken_link_stops_the_build_and_leaves_the_old_site(tmp_path, monkeypatch):
    whole = module.lay_out

    def broken(folder):
        whole(folder)
        (folder / "index.md").write_text("# Home\n\n[gone](nowhere.md)\n")

    monkeypatch.setattr(module, "lay_out", broken)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "old.html").touch()
    with pytest.raises(SiteError, match="nowhere"):
        build(tmp_path / "site")
    assert (tmp_path / "site" / "old.html").exists()


def test_a_new_page_and_a_new_folder_are_in_the_contents_by_themselves(tmp_path):
    module.lay_out(tmp_path / "docs")
    (tmp_path / "docs" / "results" / "training" / "deep").mkdir(parents=True)
    for name in ("new.md", "training/curve.md", "training/deep/down.md"):
        (tmp_path / "docs" / "results" / name).write_text(f"# About {name}\n")
    contents = navigation(tmp_path / "docs")
    for name in ("new.md", "training/curve.md", "training/deep/down.md"):
        assert f"[About {name}](results/{name})" in contents
    assert contents.index("results/verdicts.md") < contents.index("results/new.md")


def test_every_page_is_in_the_contents(tmp_path):
    module.lay_out(tmp_path / "docs")
    contents = navigation(tmp_path / "docs")
    for page in (tmp_path / "docs").rglob("*.md"):
        name = page.relative_to(tmp_path / "docs").as_posix()
        assert name == "SUMMARY.md" or f"({name})" in contents, name
    assert "- SST-2\n" in contents
