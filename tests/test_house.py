"""The rules of the house, and cheats that the search for breaches must see through."""

import itertools
from pathlib import Path

import pytest

import attnaudit
from website.house import CLOSED, LEAVES, ORDER, PRODUCERS, PURE, room, violations
from website.package import Package


@pytest.fixture(scope="module")
def package():
    return Package.read(Path(attnaudit.__file__).parent)


def test_the_rules_hold(package):
    assert [f"{violation} (line {violation.line})" for violation in violations(package)] == []


def test_every_module_has_its_place_in_the_order(package):
    rooms = {room(package, module) for module in package.modules} - {"", "__main__"}
    assert rooms == set(ORDER)


#: A house without a breach, in which each cheat is the only one.
FRONT_DOOR = """
import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnaudit.api import judge

_HOMES = {"Run": "attnaudit.report.run"}


def __getattr__(name):
    return getattr(importlib.import_module(_HOMES[name]), name)
"""
OPTIONAL = """
import importlib


def optional(module, extra, purpose):
    return importlib.import_module(module)
"""


def scratch(cheats=()):
    """A package with every room of the house, and the texts of some modules replaced."""
    single = {"_version", "errors", "defaults", "protocol", "display", "api"}
    files = {f"{name}.py" if name in single else f"{name}/__init__.py": "" for name in ORDER if name != "extras"}
    files |= {
        "__init__.py": FRONT_DOOR,
        "extras.py": OPTIONAL,
        "report/run.py": "from rich.console import Console\n\n\nclass Run:\n    console = Console()\n",
        "report/page.py": "",
        "numerics/paths.py": "from pathlib import Path as Place\n",
        "records/store.py": "from attnaudit.records import files\n",
        "records/files.py": "from pathlib import Path\n",
        "records/types.py": "from dataclasses import dataclass\n",
        "sources/timm_models.py": "from attnaudit.extras import optional\n\noptional('timm', 'timm', 'A model')\n",
        "training/optimisers.py": "import timm.optim\n",
        "attention/swapping.py": "import transformers\n",
        "measures/cosine.py": "import math\nfrom attnaudit.records.types import dataclass\n",
        "cli/main.py": "from attnaudit import api\n\nprint(api)\n",
    }
    return Package("attnaudit", files | dict(cheats))


def breaches(module, text, **more):
    name = f"attnaudit.{module.removesuffix('.py').replace('/', '.')}"
    found = [str(violation) for violation in violations(scratch({module: text, **more}))]
    assert all(breach.startswith(f"{name} -> ") for breach in found), found
    return {breach.removeprefix(f"{name} -> ") for breach in found}


def test_a_house_in_order_has_no_breach():
    assert violations(scratch()) == []


IMPORTS_OF_REPORT = {
    "statement": "import attnaudit.report",
    "statement with another name": "import attnaudit.report.run as run",
    "module from the front door": "from attnaudit import report",
    "module from a package": "from attnaudit.report import page",
    "name from a module": "from attnaudit.report.run import Run",
    "everything": "from attnaudit.report.run import *",
    "relative module": "from .. import report",
    "relative package": "from ..report import page",
    "relative name": "from ..report.run import Run",
    "among other names": "from attnaudit import errors, report as words",
    "lazy name of the front door": "from attnaudit import Run",
    "attribute of the front door": "import attnaudit.errors\nattnaudit.report.run",
    "lazy attribute of the front door": "import attnaudit.errors\nattnaudit.Run",
    "in a function": "def f():\n    from attnaudit.report import run\n",
    "in a method": "class A:\n    def f(self):\n        import attnaudit.report\n",
    "in a try": "try:\n    import attnaudit.report\nexcept ImportError:\n    pass",
    "for type checkers": "import typing\nif typing.TYPE_CHECKING:\n    from attnaudit.report.run import Run",
    "import_module": "import importlib\nimportlib.import_module('attnaudit.report')",
    "import_module by keyword": "import importlib\nimportlib.import_module(name='attnaudit.report')",
    "import_module, relative": "import importlib\nimportlib.import_module('..report', __package__)",
    "import_module with another name": "from importlib import import_module as load\nload('attnaudit.report')",
    "import_module, put together": "import importlib\nimportlib.import_module('attnaudit.' + 'report')",
    "import_module of a constant": "import importlib\nHOME = 'attnaudit.report'\nimportlib.import_module(HOME)",
    "__import__": "__import__('attnaudit.report')",
    "optional": "from attnaudit.extras import optional\noptional('attnaudit.report', 'report', 'A page')",
    "optional as an attribute": "from attnaudit import extras\nextras.optional('attnaudit.report', 'a', 'b')",
    "optional with another name": "from attnaudit.extras import optional as o\no('attnaudit.report', 'a', 'b')",
    "table of lazy imports": "_HOMES = {'Run': 'attnaudit.report.run'}",
    "list of lazy imports": "PARTS = ['attnaudit.report.run']",
}  # fmt: skip


@pytest.mark.parametrize("text", IMPORTS_OF_REPORT.values(), ids=IMPORTS_OF_REPORT)
def test_an_import_against_the_order_is_seen_in_every_form(text):
    assert "report" in breaches("kernel/gram.py", text)


def test_the_front_door_is_closed_to_those_inside():
    assert breaches("kernel/gram.py", "import attnaudit") == {"attnaudit"}
    assert breaches("kernel/gram.py", "from attnaudit import judge") == {"api"}


def test_a_package_and_a_function_of_one_name_are_both_used():
    door = {"__init__.py": FRONT_DOOR.replace("judge", "audit")}
    assert breaches("kernel/gram.py", "from attnaudit import audit", **door) == {"api", "audit"}


UNREADABLE = {
    "parameter": "import importlib\ndef f(name):\n    return importlib.import_module(name)",
    "parameter of optional": "from attnaudit.extras import optional\ndef f(x):\n    return optional(x, 'a', 'b')",
    "format": "import importlib\nimportlib.import_module('{}'.format('timm'))",
    "constant of another module": "from attnaudit.errors import A\n__import__(A)",
    "function handed on": "import importlib\nlist(map(importlib.import_module, ['timm']))",
    "function with another name": "from importlib import import_module\nload = import_module",
    "importlib handed on": "import importlib\ngetattr(importlib, 'import_module')('timm')",
    "exec": "exec('import timm')",
    "eval": "eval('__import__')('timm')",
    "builtins": "import builtins as b\nvars(b)['__import__']('timm')",
    "builtins of the module": "globals()['__builtins__']['open']",
    "function by its name": "from importlib import util\nvars(util)['import_module']",
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("place", ["kernel/gram.py", "audit/plan.py"])
def test_an_import_that_cannot_be_read_is_a_breach_itself(place, text):
    assert "?" in breaches(place, text)


def test_modules_that_are_loaded_may_be_asked_for_but_not_taken():
    asked = "import sys\nknown = 'timm' in sys.modules"
    assert breaches("audit/plan.py", asked) == set()
    assert breaches("audit/plan.py", "import sys\nsys.modules['timm']") == {"sys.modules"}


FILES = {
    "pathlib": "import pathlib",
    "Path": "from pathlib import Path",
    "os": "import os.path as p",
    "path": "from os import path",
    "io": "import io",
    "shutil": "def f():\n    import shutil",
    "tempfile": "from tempfile import mkdtemp",
    "parquet": "import pyarrow.parquet as pq",
    "parquet as a name": "from pyarrow import parquet",
    "parquet as an attribute": "import pyarrow as pa\npa.parquet.read_table('a')",
    "dataset": "from pyarrow import dataset as ds",
    "open": "open('a')",
    "open handed on": "read = open",
    "open of builtins": "from builtins import open as o\no('a')",
    "torch.save": "import torch\ntorch.save({}, 'a')",
    "save with another name": "from torch import save as keep",
    "numpy.load": "import numpy as np\nnp.load('a')",
    "a path that was given": "def f(path):\n    path.write_text('a')",
    "pathlib by name": "from attnaudit.extras import optional\noptional('pathlib', 'a', 'b')",
    "pathlib for type checkers": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pathlib import Path",
    "Path from a leaf": "from attnaudit.numerics.paths import Place",
    "Path as an attribute of a leaf": "from attnaudit.numerics import paths\npaths.Place('a')",
    "a neighbour that does it": "from attnaudit.records.files import save",
    "a neighbour's neighbour": "from attnaudit.records.store import save",
    "os of a library": "import torch\ntorch.serialization.os.remove('a')",
    "what nobody thought of": "import webdataset",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
@pytest.mark.parametrize("folder", [*PURE, "gaussian"])
def test_mathematics_reads_and_writes_no_file(folder, text):
    assert breaches(f"{folder}/closed.py", text)


def test_experiments_of_the_laboratory_may_write():
    assert breaches("gaussian/experiments/align.py", "from pathlib import Path") == set()


MODELS = {
    "timm": ("import timm", "timm"),
    "timm.data": ("from timm.data import create_transform", "timm"),
    "transformers": ("def f():\n    from transformers import AutoModel", "transformers"),
    "optional": ("from attnaudit.extras import optional\noptional('timm.data', 'timm', 'This')", "timm"),
    "optional of a part": (
        "from attnaudit.extras import optional\n[optional(f'timm.{part}', 'a', 'b') for part in ('optim', 'data')]",
        "timm",
    ),
    "optional of a table": (
        "from attnaudit.extras import optional\nHOMES = {'a': 'timm.data'}\ndef f(x):\n    optional(HOMES[x], '', '')",
        "timm",
    ),
    "import_module in a loop": (
        "import importlib\nfor name in ('torch', 'transformers'):\n    importlib.import_module(name)",
        "transformers",
    ),
    "for type checkers": ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import timm", "timm"),
}


@pytest.mark.parametrize(("text", "library"), MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(
    "place", ["kernel/gram.py", "robustness/masks.py", "attention/rpc.py", "cli/main.py", "api.py"]
)
def test_model_libraries_are_known_to_few(place, text, library):
    assert library in breaches(place, text)


@pytest.mark.parametrize("place", ["sources/hub.py", "capture/fused.py", "attention/swapping.py", "training/recipe.py"])
def test_model_libraries_are_known_where_models_are_met(place):
    assert breaches(place, "import timm\nfrom transformers import AutoModel") == set()


PRINTING = {
    "print": "print(1)",
    "print handed on": "show = print",
    "print of builtins": "import builtins\nbuiltins.print(1)",
    "Console": "from rich.console import Console",
    "rich": "import rich\nrich.print(1)",
    "stdout": "import sys\nsys.stdout.write('a')",
    "stderr with another name": "from sys import stderr as e",
    "sys with another name": "import sys as s\ns.stdout",
    "echo": "import typer\ntyper.echo('a')",
    "a console that was given": "def f(console):\n    console.print('a')",
    "progress": "from tqdm import tqdm",
    "optional": "from attnaudit.extras import optional\noptional('rich.console', 'a', 'b')",
    "Console from a neighbour": "from attnaudit.report.run import Console",
}


@pytest.mark.parametrize("text", PRINTING.values(), ids=PRINTING)
@pytest.mark.parametrize("place", ["kernel/gram.py", "audit/plan.py", "claims/jury.py", "api.py"])
def test_only_the_command_line_and_the_report_print(place, text):
    assert breaches(place, text)


@pytest.mark.parametrize("place", ["cli/main.py", "report/terminal.py"])
def test_the_command_line_and_the_report_print(place):
    assert breaches(place, "import sys\nfrom rich.console import Console\nprint(sys.stdout)") == set()


def place_in(room):
    return f"{room}.py" if room == "api" or (room in LEAVES and room != "numerics") else f"{room}/cheat.py"


@pytest.mark.parametrize("here", ORDER)
def test_imports_point_to_what_stands_before(here):
    for there in {*ORDER} - {here, *LEAVES}:
        allowed = ORDER.index(there) < ORDER.index(here) and there not in CLOSED.get(here, ())
        assert breaches(place_in(here), f"from attnaudit import {there}") == (set() if allowed else {there})


@pytest.mark.parametrize("here", ORDER)
def test_leaves_are_open_to_all(here):
    assert breaches(place_in(here), "from attnaudit import errors, numerics") == set()


@pytest.mark.parametrize(("here", "there"), itertools.permutations(PRODUCERS, 2))
def test_producers_never_import_one_another(here, there):
    assert breaches(f"{here}/plan.py", f"from attnaudit.{there} import result") == {there}


def test_a_package_without_a_place_may_not_be_used():
    assert breaches("audit/plan.py", "from attnaudit.attic import old", **{"attic/__init__.py": ""}) == {"attic"}
