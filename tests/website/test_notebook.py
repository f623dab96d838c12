"""The notebook is the tutorial, and it runs."""

import json

import pytest

from tests.website.test_commands import assert_prints
from website.notebook import NOTEBOOK, notebook

pytest.importorskip("timm")
pytest.importorskip("transformers")


def test_the_notebook_is_that_of_the_pages():
    assert NOTEBOOK.read_text() == notebook(), "write it again: python -m website.notebook"


def test_the_notebook_runs_from_top_to_bottom_and_prints_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    cells = [cell for cell in json.loads(notebook())["cells"] if cell["cell_type"] == "code"]
    known = {}
    for cell in cells:
        shown = "".join(line for output in cell["outputs"] for line in output["text"])
        assert_prints("".join(cell["source"]), shown, known)
    assert sum(bool(cell["outputs"]) for cell in cells) >= 9
