"""The rules of the house: data walks from left to right, and imports point left."""

import ast
from pathlib import Path

import pytest

import attnaudit

ROOT = Path(attnaudit.__file__).parent
#: `attention` and `gaussian` stand before the walk, `sources` (which builds models with attention variants) and
#: `capture` both start it.
ORDER = (
    "numerics",
    "records",
    "attention",
    "gaussian",
    "sources",
    "capture",
    "kernel",
    "theories",
    "measures",
    "statistics",
    "audit",
    "papers",
    "claims",
    "training",
    "robustness",
    "report",
    "cli",
)
INDEPENDENT = {
    ("gaussian", "attention"),
    ("sources", "gaussian"),
    ("capture", "attention"),
    ("capture", "gaussian"),
    ("capture", "sources"),
}


def imported_folders(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            parts = name.split(".")
            if parts[0] == "attnaudit" and len(parts) > 1 and parts[1] in ORDER:
                yield parts[1]


@pytest.mark.parametrize("folder", ORDER)
def test_imports_point_left(folder):
    for path in (ROOT / folder).rglob("*.py"):
        for other in imported_folders(path):
            assert ORDER.index(other) <= ORDER.index(folder), f"{path.name} imports {other}"
            assert (folder, other) not in INDEPENDENT, f"{path.name} imports {other}"


@pytest.mark.parametrize("folder", ["attention", "gaussian", "kernel", "measures"])
def test_mathematics_knows_no_model_and_no_file(folder):
    for path in (ROOT / folder).rglob("*.py"):
        names = {alias.name.split(".")[0] for node in ast.walk(ast.parse(path.read_text()))
                 if isinstance(node, ast.Import) for alias in node.names}  # fmt: skip
        assert not names & {"timm", "transformers", "pyarrow", "pathlib", "os"}, path.name


def test_only_the_command_line_prints():
    for path in ROOT.rglob("*.py"):
        if path.parent.name != "cli":
            calls = {node.func.id for node in ast.walk(ast.parse(path.read_text()))
                     if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}  # fmt: skip
            assert "print" not in calls, path.name
