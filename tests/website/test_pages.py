"""The parts a page is made of: blocks, links, formulas."""

import re

import pytest

from attnaudit.claims.registry import CLAIMS
from website.blocks import commands, programs
from website.build import ROOT, section
from website.links import moved_links

PAGE = """# Page

```console
$ attnaudit ls claims   # a comment
an answer
$ make test
```

```python
print(1)
```

```text
1
```

```python
x = 2
```

prose

```text
no output
```
"""


def test_commands_are_the_lines_after_a_dollar():
    assert commands(PAGE) == ["attnaudit ls claims   # a comment", "make test"]


def test_text_right_after_python_is_what_it_prints():
    assert programs(PAGE) == [("print(1)\n", "1\n"), ("x = 2\n", None)]


def test_every_claim_has_its_row_among_the_results():
    rows = (ROOT / "docs" / "results" / "README.md").read_text().splitlines()
    first = " ".join(row.split("|")[1] for row in rows if row.startswith("|"))
    assert [name for name in CLAIMS if f"`{name}`" not in first] == []


def test_links_follow_the_pages_to_their_places(tmp_path):
    places = {"docs/a/one.md": tmp_path / "a" / "one.md", "CHANGES.md": tmp_path / "project" / "changes.md"}
    text = "[c](../../CHANGES.md#top) ![p](one.md) [w](https://a.b/c.md) [g](../gone.md) [h](#there)"
    moved = moved_links(text, "docs/a/two.md", tmp_path / "a" / "two.md", places)
    assert moved == "[c](../project/changes.md#top) ![p](one.md) [w](https://a.b/c.md) [g](../gone.md) [h](#there)"
    assert moved_links("[d](docs/a/one.md)", "CHANGES.md", places["CHANGES.md"], places) == "[d](../a/one.md)"


def test_links_between_pages_hold_in_the_repository_too():
    for page in (*ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md"), *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\((?!https?://|#)([^)\s#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} leads to {target}"


def test_a_section_becomes_a_page_without_its_neighbours():
    page = "# A\n\n## B\n\none\n\n### C\n\n## D\n\ntwo\n"
    assert section(page, "B") == "# B\n\none\n\n### C\n\n"
    assert section(page, "D") == "# D\n\ntwo\n"


@pytest.fixture
def rendered():
    markdown = pytest.importorskip("markdown")
    pytest.importorskip("latex2mathml")
    extensions = ["tables", "pymdownx.superfences", "website.mathml"]
    return lambda text: markdown.markdown(text, extensions=extensions)


@pytest.mark.parametrize("text", ["costs $5 and $6", "`$x$`", "```sh\n$x = $y\n```", "``a `$b$` c``", "\\$x\\$"])
def test_dollars_that_are_no_formula_stay(rendered, text):
    assert "<math" not in rendered(text)


def test_a_letter_that_browsers_cannot_draw_is_an_error_and_not_another_letter(rendered):
    assert "ℝ" in rendered(r"$\mathbb R$")
    with pytest.raises(ValueError, match="fraktur"):
        rendered(r"$\mathfrak g$")


@pytest.mark.parametrize(
    ("text", "count"),
    [("$a_1*b$ and $c*d_1$", 2), ("$$a\n=b$$", 1), ("a ($x$), b", 1), ("| a |\n| - |\n| $x_1$ |", 1), ("$a\nb$", 1)],
)
def test_formulas_become_mathml_and_no_emphasis(rendered, text, count):
    html = rendered(text)
    assert html.count("<math") == count
    assert "<em>" not in html
    assert "$" not in html
