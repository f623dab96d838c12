"""The lock of `make` and the requirements of the package agree."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements" / "lock.txt").read_text()
PINS = {canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==([\w.+-]+)", LOCK, re.MULTILINE)}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def requirements(extra):
    """What the package needs with an extra, and what the extras that it names need."""
    for line in [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"][extra]]:
        found = Requirement(line)
        if found.name == PROJECT["project"]["name"]:
            for other in sorted(found.extras):  # every process of a test run must see the same order
                yield from requirements(other)
        else:
            yield found


def wanted():
    """Of the package and its build, with what `make` adds."""
    beside = (ROOT / "requirements" / "lock.in").read_text().splitlines()
    lines = [*PROJECT["build-system"]["requires"], *(line for line in beside if not line.startswith("#"))]
    return list({str(found): found for found in (*requirements("dev"), *map(Requirement, lines))}.values())


@pytest.mark.parametrize("requirement", wanted(), ids=str)
def test_the_lock_has_every_requirement_in_a_version_that_suits(requirement):
    assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)])


@pytest.mark.parametrize("name", PINS)
def test_the_lock_has_all_that_its_packages_need(name):
    try:
        here = distribution(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    if here.version != PINS[name]:
        pytest.skip(f"{name} {here.version} is installed, which may need others")
    for found in map(Requirement, here.requires or []):
        if found.marker is None or found.marker.evaluate({"extra": ""}):
            assert found.specifier.contains(PINS[canonicalize_name(found.name)], prereleases=True), str(found)


def test_every_locked_package_has_hashes_and_no_address():
    for entry in re.split(r"^(?=[\w.-]+==)", LOCK, flags=re.MULTILINE)[1:]:
        assert re.fullmatch(
            r"\S+(?: ; sys_platform [!=]= \"linux\")?(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n", entry
        ), entry[:60]
    assert "://" not in LOCK
