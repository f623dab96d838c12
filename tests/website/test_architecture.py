"""The page about the architecture is what the code says."""

import json

import pytest

from website.architecture import PAGE, RECORD, SOURCE, measured, page
from website.house import LEAVES
from website.package import Package


@pytest.fixture(scope="module")
def now():
    return measured(Package.read(SOURCE), LEAVES)


def test_the_page_is_written_from_the_code(now):
    assert PAGE.read_text() == page(json.loads(RECORD.read_text()), now), "run `python -m website.architecture`"


def test_no_two_classes_have_the_same_name(now):
    assert now["twice"] == []


def test_few_files_of_training_have_a_single_importer(now):
    assert 4 * now["training"]["one_importer"] < now["training"]["files"]


def test_a_package_is_measured_by_its_files_importers_and_class_names():
    files = {
        "__init__.py": "",
        "errors.py": "class Problem: ...\n",
        "training/__init__.py": "",
        "training/loop.py": "from attnaudit.training import steps\nfrom attnaudit.errors import Problem\n\n\n",
        "training/steps.py": "def f():\n    class Problem: ...\n",
        "cli.py": "from attnaudit.training.loop import train\n",
        "api.py": "def train():\n    from attnaudit import training\n    training.loop.train()\n",
    }
    found = measured(Package("attnaudit", files), ("errors",))
    assert found["sizes"]["training"] == [3, 6, 2]
    assert found["imports"] == {"training": ["leaves"], "cli": ["training"], "api": ["training"]}
    assert found["twice"] == ["Problem"]
    assert found["training"] == {"files": 2, "one_importer": 1}
