"""Every command and every program that README, tutorial and how-to show is run, as it is written.

README is run from top to bottom in one folder, which has what its reader brings and nothing else.
"""

import contextlib
import glob
import io
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from website.blocks import blocks, commands, programs
from website.build import ROOT
from website.notebook import PAGES

pytest.importorskip("timm")
pytest.importorskip("transformers")

#: What cannot run in a test, and why. Everything else must: a command this file does not know fails.
NOT_RUN = {
    r"pip install ": "needs the network; tests/test_release.py builds the wheel and installs it",
    r"xdg-open ": "opens a browser",
    r"attnaudit report .* --watch": "runs until a training ends; tests/api/test_reports.py watches one",
    r"dask (scheduler|worker) ": "runs until it is stopped",
    r"attnaudit .* --cluster ": "needs those two; tests/records/engine/test_cluster.py runs it",
    r"attnaudit .* --download\b": "needs the network",
    r"attnaudit audit model.gguf": "needs the package gguf; tests/sources/test_hf_gguf.py writes a file and runs it",
    r"attnaudit audit stories260k": "needs files that are in no package; tests/sources/atlas runs it if they are here",
    r"python -m benchmarks.robustness": "trains for an hour; tests/test_robustness_experiment.py runs its parts",
    r"torchrun ": "starts processes of its own; tests/training runs them",
}
SMALL_LM = (
    "--epochs 1 --set batch=2 --set min_count=1 --set model.context=32 --set model.width=8 --set model.depth=2 "
    "--set model.heads=2"
)
#: Options added to what would take minutes on any input.
SMALLER = {
    "attnaudit audit minilm --limit": "--limit 1 --references gaussian,planted",
    "attnaudit audit vit-small-cifar --limit": "--limit 1 --references gaussian,planted",
    "attnaudit audit timm:deit_tiny_patch16_224 --weights": "--references gaussian,planted",
    "attnaudit atlas --models": "--models vit-small-cifar --limit 1",
    "attnaudit gaussian align": "--steps 5 --runs 2",
    "attnaudit train vit-small-cifar": "--epochs 1 --set batch=4 --set model.depth=1 --set model.width=12",
    "attnaudit train segment-camvid": (
        "--epochs 1 --set batch=2 --set model.depth=1 --set model.width=12 --set model.patch_size=60"
    ),
    "attnaudit train sst2-minilm": "--epochs 1 --limit 9 --set batch=4 --set model.context=16 --set precision=fp32",
    "attnaudit train lm": SMALL_LM,
    "attnaudit train my-recipe": SMALL_LM,
    "attnaudit corrupt": "--severities 1 --corruptions snow",
    "attnaudit robust vit-small-cifar runs/rpc": "--severities 1 --corruptions fog",
    "attnaudit robust timm:deit_tiny_patch16_224 --weights deit_tiny.safetensors --images ilsvrc/val --corrupted": (
        "--severities 1 --corruptions fog"
    ),
    "attnaudit robust runs/segment": "--severities 1 --corruptions fog",
    "attnaudit robust runs/rpc": "--attacks pgd:2,square:9,autoattack:1",
}
#: Python that cannot run in a test: it submits jobs to a cluster.
SUBMITS = "dask_jobqueue"
NUMBER = re.compile(r"-?\d[\d,.]*(e[+-]?\d+)?")


README = (ROOT / "README.md").read_text()


def pages():
    """Pages whose commands are run each by itself."""
    for chapter in ("tutorial", "how-to"):
        yield from sorted((ROOT / "docs" / chapter).glob("*.md"))


def without_comment(line):
    """A command line as a shell reads it; its patterns stay patterns."""
    return re.sub(r"\s+# .*", "", line)


def typed():
    """Every command once, in the order of the pages."""
    found = (without_comment(line) for page in pages() for line in commands(page.read_text()))
    return list(dict.fromkeys(found))


def excuse(command):
    """Why a command is not run, or None."""
    return next((why for pattern, why in NOT_RUN.items() if re.match(pattern, command)), None)


def run(command, monkeypatch):
    """Run a command line as a shell would, but in this process, which has loaded torch already; its exit code."""
    from attnaudit.cli import main

    extra = next((more for start, more in SMALLER.items() if command.startswith(start)), "")
    words = [found for word in shlex.split(f"{command} {extra}") for found in sorted(glob.glob(word)) or [word]]
    if words[0] == "make":
        return run_made(words, monkeypatch)
    assert words[0] == "attnaudit", f"the tests cannot run {words[0]}: say so in NOT_RUN, with the reason"
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


def run_made(words, monkeypatch):
    """Run what `make` would run of attnaudit, without its set-up; the first exit code that is no 0, or 0."""
    done = subprocess.run(["make", "--dry-run", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    made = re.findall(r"^(?:\w+=\S+ )*\S+/bin/(attnaudit .+)$", done.stdout, re.MULTILINE)
    return done.returncode or next((code for code in (run(line, monkeypatch) for line in made) if code), 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from tests.website.standins import make_earlier_work, make_files

    place = tmp_path_factory.mktemp("reader")
    make_files(place)
    make_earlier_work(place)
    return place


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("ATTNAUDIT_DATA", raising=False)


@pytest.mark.parametrize("command", typed())
def test_a_command_of_the_documentation_runs(command, folder, monkeypatch, capsys):
    if excuse(command) is not None:
        pytest.skip(excuse(command))
    monkeypatch.chdir(folder)
    assert run(command, monkeypatch) == 0, capsys.readouterr().err


def test_readme_runs_from_top_to_bottom_in_one_folder(tmp_path, monkeypatch, capsys):
    from tests.website.standins import make_files, names

    make_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    known = names("README.md")
    for block in blocks(README):
        if block.language == "python":
            exec(compile(block.text, "<README>", "exec"), known)
        elif block.language == "console":
            for command in map(without_comment, commands(f"```console\n{block.text}```")):
                assert_runs(command, monkeypatch, capsys)
    assert Path("comparison.html").stat().st_size > 100_000


def assert_runs(command, monkeypatch, capsys):
    """A command ends well in this folder; of one that is not run, the files exist that it names by a pattern."""
    if excuse(command) is None:
        assert run(command, monkeypatch) == 0, f"{command}\n{capsys.readouterr().err}"
    assert all(glob.glob(word) for word in shlex.split(command) if "*" in word), command


def test_readme_names_every_extra_of_the_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    install = README.partition("## Install")[2].partition("\n## ")[0]
    assert [name for name in extras if f"`{name}`" not in install] == ["docs", "coverage-models", "dev"]


@pytest.mark.parametrize("command", ["attnaudit audit minilm --no-such-option", "attnaudit frobnicate", "make nothing"])
def test_a_command_that_does_not_exist_is_noticed(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert run(command, monkeypatch) != 0


def test_a_program_nobody_knows_is_noticed(monkeypatch):
    with pytest.raises(AssertionError, match="NOT_RUN"):
        run("frobnicate --now", monkeypatch)


def test_nothing_is_excused_that_is_not_there():
    everywhere = [*typed(), *map(without_comment, commands(README))]
    for pattern in NOT_RUN:
        assert any(re.match(pattern, command) for command in everywhere), pattern
    for start in SMALLER:
        assert any(command.startswith(start) for command in everywhere), start


def with_programs():
    """Pages with Python in them; those of the tutorial run as its notebook, and README with its commands."""
    shown = (
        page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in PAGES and programs(page.read_text())
    )
    return [page.relative_to(ROOT).as_posix() for page in shown]


@pytest.mark.parametrize("page", with_programs())
def test_the_python_of_a_page_runs_and_prints_what_it_shows(page, folder, monkeypatch):
    from tests.website.standins import names

    monkeypatch.chdir(folder)
    known = names(page)
    for program, shown in programs((ROOT / page).read_text()):
        if SUBMITS not in program:
            assert_prints(program, shown, known)


def assert_prints(program, shown, known):
    """Run a program among the names it may use; its output must be what the page shows, but for the digits."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "<documentation>", "exec"), known)
    if shown is not None:
        assert in_words(printed.getvalue()) == in_words(shown)


def in_words(text):
    """Without its digits, which may differ from one machine to the next, and its spacing, which follows them."""
    return NUMBER.sub("#", text).split()
