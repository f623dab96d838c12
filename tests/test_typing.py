"""A user's program type-checks against the public API."""

from pathlib import Path

import pytest

import attnaudit

ROOT = Path(__file__).parents[1]
PROGRAM = """
import torch
from torch import nn

import attnaudit
from attnaudit.capture import HeadId

model: nn.Module = nn.Identity()
batch = torch.zeros(1, 4, 8)
captured: attnaudit.Capture = attnaudit.capture(model, batch, names=["first"])
heads: attnaudit.Heads = captured.heads
index: tuple[HeadId, ...] = heads.index
run: attnaudit.Run = attnaudit.audit(model, batch, claims=["kpca-values"])
again: attnaudit.Run = attnaudit.open(run.path)
sentences: list[str] = [verdict.claim for verdict in run.verdicts]
"""


def check(program, folder):
    api = pytest.importorskip("mypy.api")
    path = folder / "program.py"
    path.write_text(program)
    # The project's settings and cache: after a `mypy` of the project this takes a second, not half a minute.
    output, errors, status = api.run(["--strict", "--config-file", str(ROOT / "pyproject.toml"),
                                      "--cache-dir", str(ROOT / ".mypy_cache"), str(path)])  # fmt: skip
    return status, output + errors


@pytest.fixture(autouse=True)
def found_as_source(monkeypatch):
    monkeypatch.setenv("MYPYPATH", str(Path(attnaudit.__file__).parents[1]))
    monkeypatch.chdir(ROOT)


def test_a_users_program_has_no_type_error(tmp_path):
    status, output = check(PROGRAM, tmp_path)
    assert status == 0, output


def test_a_wrong_argument_of_capture_is_a_type_error(tmp_path):
    status, output = check(PROGRAM + "attnaudit.capture(model, batch, names=3)\n", tmp_path)
    assert status == 1
    assert '"names"' in output
