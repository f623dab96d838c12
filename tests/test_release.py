"""What is handed to users: wheel and source archive, which install and work without this checkout."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from attnaudit import __version__

pytest.importorskip("hatchling")

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text()


def run(*command, cwd):
    """Run a program that does not see this checkout, and return what it printed."""
    surroundings = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "ATTNAUDIT_DATA")}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=surroundings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(kind, source, out):
    run(sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", out, cwd=source)
    (made,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return build("sdist", ROOT, tmp_path_factory.mktemp("archive"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """An environment with the wheel alone, which finds the other packages of this one, but not its `.pth` files."""
    place = tmp_path_factory.mktemp("user") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", place, cwd=place.parent)
    python = place / "bin" / "python"
    pip = ("-m", "pip", "--quiet", "--python", python, "install", "--no-deps", "--no-index")
    run(sys.executable, *pip, wheel, cwd=place.parent)
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])", cwd=place.parent)
    Path(packages.strip(), "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    run(python, ROOT / "requirements" / "torchvision_cpu.py", cwd=place.parent)
    return place


def test_the_wheel_has_every_file_of_the_package(wheel):
    folder = ROOT / "src"
    here = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == {name for name in here if "__pycache__" not in name and ".egg-info/" not in name}


def test_the_source_archive_builds_the_same_wheel(archive, wheel, tmp_path):
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    again = build("wheel", tmp_path / f"attnaudit-{__version__}", tmp_path / "again")
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def test_the_source_archive_has_the_tests_and_what_they_read(archive):
    with tarfile.open(archive) as packed:
        names = {Path(*Path(name).parts[1:]).as_posix() for name in packed.getnames()}
    assert {"README.md", "Makefile", "CITATION.cff", ".github/workflows/ci.yml", "tests/test_release.py"} <= names
    assert {"requirements/lock.txt", "website/zensical.toml", "docs/index.md", "benchmarks/README.md"} <= names


def test_the_installed_wheel_is_what_runs(environment, tmp_path):
    where = run(environment / "bin" / "python", "-c", "import attnaudit; print(attnaudit.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(environment)
    assert run(environment / "bin" / "attnaudit", "--version", cwd=tmp_path) == f"{__version__}\n"


def test_the_installed_wheel_lists_claims_and_audits_the_model_that_it_carries(environment, tmp_path):
    pytest.importorskip("timm")
    attnaudit = environment / "bin" / "attnaudit"
    assert "kpca-values" in run(attnaudit, "ls", "claims", cwd=tmp_path)
    small = ("--limit", 1, "--references", "planted", "--claims", "kpca-values", "--out", tmp_path / "run")
    assert "undecided" in run(attnaudit, "audit", "vit-small-cifar", *small, cwd=tmp_path)
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000


def test_what_is_cited_is_the_last_release_of_the_changelog():
    citation = (ROOT / "CITATION.cff").read_text()
    named = dict(re.findall(r"^(version|date-released): (\S+)$", citation, re.MULTILINE))
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections[:2] == ["Unreleased", "{version} ({date-released})".format_map(named)]


def test_code_that_is_not_released_does_not_bear_the_version_of_a_release():
    """Cards and run folders say which code made them; what changed after a release must not pass for it."""
    text = (ROOT / "CHANGELOG.md").read_text()
    unreleased, released = re.split(r"^## ", text, flags=re.MULTILINE)[1:3]
    changed = unreleased.removeprefix("Unreleased").strip()
    assert (".dev" in __version__) == bool(changed)
    assert released.startswith(f"{__version__} ") == (not changed)


def test_the_wheel_of_the_readme_is_the_one_that_is_built():
    assert f"dist/attnaudit-{__version__}-py3-none-any.whl" in (ROOT / "README.md").read_text()


def test_the_workflow_tests_the_pythons_that_the_package_names():
    named = re.findall(r"Programming Language :: Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert named[0] == PROJECT["requires-python"].removeprefix(">=")
    tested = re.findall(r"^ +python: \[(.+)\]$", WORKFLOW, re.MULTILINE)
    assert len(tested) == 2
    assert all(re.findall(r"[\d.]+", line) == named for line in tested)


def test_the_workflow_calls_targets_that_make_has():
    called = re.findall(r"run: make (\w+)", WORKFLOW)
    assert called == ["lint", "typecheck", "test"]
    for target in called:
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, check=True)
