"""The recipes of CONTRIBUTING.md: one file and one line each, and what they add works."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import attnaudit
from website.house import violations
from website.package import Package

SOURCE = Path(attnaudit.__file__).parent
PAGE = SOURCE.parents[1] / "CONTRIBUTING.md"
BLOCK = re.compile(r'^```(python|diff) title="src/attnaudit/([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
#: What each recipe adds, asked of the copy of the package by a program of its own.
PROGRAM = """
import json
import torch
from torch import nn
import attnaudit
from attnaudit.attention.registry import variant_named
from attnaudit.protocol import Protocol
from attnaudit.robustness.attacks.problem import Problem
from attnaudit.robustness.attacks.registry import attack_named
from attnaudit.sources.model import load_model, parse_model

assert attnaudit.__file__.startswith({folder!r})
spec = parse_model("toy:32", random_weights=True)
module = load_model(spec).module
images = torch.rand(3, 3, 64, 64, generator=torch.Generator().manual_seed(0))
run = attnaudit.audit(
    module, images, measures=["sign_agreement", "column_cosine_matched"], references=["reversed_tokens", "planted"],
    theories=["uncentred-pca"], claims=["uncentred-values"],
)
rows = run.evidence.to_pylist()
problem = Problem(nn.Flatten(), images, torch.zeros(3, dtype=torch.int64), torch.Generator().manual_seed(0))
moved = attack_named("coin", Protocol.EXACT)(problem, 0.1)
layer = variant_named("cosine").module(32, 2)
print(json.dumps({{
    "measures": sum(row["measure"] == "sign_agreement" and row["value"] is not None for row in rows),
    "references": sum(row["reference"] == "reversed_tokens" for row in rows),
    "theories": sum(row["theory"] == "uncentred-pca" for row in rows),
    "claims": [verdict.claim for verdict in run.verdicts],
    "attacks": (moved - images).abs().max().item(),
    "sources": spec.label,
    "attention": list(layer(torch.randn(2, 5, 32)).shape),
}}))
"""


def recipes():
    """For each kind of thing: the file to add, and the changes of its registry as (path, old lines, new lines)."""
    found = {}
    for section in PAGE.read_text().split("\n### ")[1:]:
        blocks = BLOCK.findall(section.partition("\n## ")[0])
        assert [language for language, _, _ in blocks] == ["python", "diff"], section[:40]
        found[section.partition("\n")[0]] = blocks
    return found


def applied(text, diff):
    """A text with the changes of a diff, each of which must fit in one place."""
    for change in diff.split("@@\n"):
        lines = change.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if not line.startswith("+"))
        new = "".join(line[1:] for line in lines if not line.startswith("-"))
        assert text.count(old) == 1, f"{text.count(old)} places for {old!r}"
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package in which every recipe was followed."""
    folder = tmp_path_factory.mktemp("recipes") / "attnaudit"
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for (_, added, program), (_, registry, diff) in recipes().values():
        assert not (folder / added).exists()
        (folder / added).write_text(program)
        (folder / registry).write_text(applied((folder / registry).read_text(), diff))
    return folder


@pytest.fixture(scope="module")
def answers(package):
    program = PROGRAM.format(folder=str(package))
    done = subprocess.run([sys.executable, "-c", program], cwd=package.parent, env={"PYTHONPATH": str(package.parent)},
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "kind", ["measure", "reference", "theory", "claim", "attack", "model source", "attention variant"]
)
def test_there_is_a_recipe_of_one_file_and_one_line(kind):
    (recipe,) = (blocks for name, blocks in recipes().items() if name.endswith(kind))
    _, (_, _, diff) = recipe
    added = [line for line in diff.splitlines() if line.startswith("+")]
    assert not re.search(r"^-", diff, re.MULTILINE)
    assert len([line for line in added if "import" not in line and not re.fullmatch(r"\+    \w+,", line)]) <= 1
    assert len(added) <= 2  # the line, and its import


@pytest.mark.parametrize(
    ("folder", "answer"),
    [
        ("measures", 2 * 3 * 2 * 3),  # heads x inputs, of two theories, observed and in both references
        ("references", 3 * 2 * 2 * 2),
        ("claims", ["uncentred-values"]),
        ("attacks", pytest.approx(0.1)),
        ("sources", "32 (random weights)"),
        ("attention", [2, 5, 32]),
    ],
)
def test_what_a_recipe_adds_can_be_used(answers, folder, answer):
    assert answers[folder] == answer


def test_recipes_keep_the_rules_of_the_house(package):
    assert [str(v) for v in violations(Package.read(package))] == [str(v) for v in violations(Package.read(SOURCE))]


def test_recipes_are_written_as_the_package_is(package):
    pytest.importorskip("ruff")
    changed = [str(package / path) for blocks in recipes().values() for _, path, _ in blocks]
    for command in (["check"], ["format", "--check"]):
        config = ["--config", str(PAGE.parent / "pyproject.toml"), "--no-cache"]
        done = subprocess.run([sys.executable, "-m", "ruff", *command, *config, *changed],
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stdout
