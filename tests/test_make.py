"""`make` sets up its environment only with a Python that suits, and says how to go on."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def checkout(tmp_path):
    """What `make` reads of the repository, and nothing that it has made."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def program(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)
    return path


def make(folder, *words):
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(["make", *words], cwd=folder, env=surroundings, capture_output=True, text=True, check=False)


def said(done):
    """What was said, without make's own line about the error."""
    return [line for line in done.stderr.splitlines() if not line.startswith("make")]


@pytest.mark.parametrize("target", ["audit", "test"])
def test_a_python_that_is_too_old_is_one_sentence_and_leaves_nothing(target, checkout):
    old = program(checkout / "old", 'if [ "$1" = --version ]; then echo Python 3.9.18; else exit 1; fi')
    done = make(checkout, target, f"PYTHON={old}")
    assert done.returncode != 0
    (sentence,) = said(done)
    assert f"needs Python 3.11 or newer, and {old} is Python 3.9.18" in sentence
    assert f"make {target} PYTHON=" in sentence
    assert not (checkout / ".venv").exists()


def test_a_python_that_is_not_there_is_one_sentence(checkout):
    (sentence,) = said(make(checkout, "audit", "PYTHON=no-such-python"))
    assert "no-such-python is missing" in sentence
    assert not (checkout / ".venv").exists()


def test_an_environment_that_could_not_be_made_is_not_left_behind(checkout):
    broken = program(checkout / "broken", 'if [ "$2" = venv ]; then mkdir -p "$3/bin"; exit 1; fi')
    assert make(checkout, "audit", f"PYTHON={broken}").returncode != 0
    assert not (checkout / ".venv").exists()


def test_an_audit_ends_by_saying_how_to_call_attnaudit_again(checkout):
    program(checkout / ".venv" / "bin" / "attnaudit", 'echo "$@"')
    (checkout / ".venv" / ".installed").touch()
    done = make(checkout, "audit")
    assert done.returncode == 0
    assert "To call attnaudit again: .venv/bin/attnaudit" in done.stderr.splitlines()[-1]


def pip_calls(folder, *, answers):
    """How pip was called by `make`, if programs whose words contain a key of `answers` end with its exit code."""
    cases = [f'case "$*" in *{words}*) exit {code};; esac' for words, code in answers.items()]
    program(folder / ".venv" / "bin" / "python", 'echo "$@" >> calls', *cases)
    make(folder, ".venv/.installed")
    return [line for line in (folder / "calls").read_text().splitlines() if "pip install" in line]


def test_everything_is_installed_by_its_hash_where_the_lock_can_be_had(checkout):
    first, last = pip_calls(checkout, answers={})
    assert "--require-hashes --requirement requirements/lock.txt" in first
    assert "--no-deps --no-build-isolation --editable ." in last


def test_pip_chooses_where_the_lock_cannot_be_had(checkout):
    first, last = pip_calls(checkout, answers={"can_install_lock": 1})
    assert ".[dev]" in first
    assert "--require-hashes" not in first
    assert "--no-deps --no-build-isolation --editable ." in last


def test_a_file_with_another_hash_is_an_error_and_nothing_else_is_tried(checkout):
    assert len(pip_calls(checkout, answers={"--require-hashes": 1})) == 1
    assert not (checkout / ".venv" / ".installed").exists()
