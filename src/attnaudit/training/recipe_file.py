"""Recipe files: found by name, laid over the one they are based on, changed setting by setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnaudit.errors import UsageError, first_line
from attnaudit.extras import optional

FOLDER = Path(__file__).parent / "recipes"
_BASE = "base"


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def recipe_content(name: str, changes: Sequence[str] = ()) -> dict[str, Any]:
    """What a recipe of the package, or a YAML file, says, with changes such as `model.depth=6`."""
    content = _content(_file(name))
    for change in changes:
        _apply(content, change)
    return content


def _file(name: str) -> Path:
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        path = FOLDER / f"{name}.yaml"
        if not path.is_file():
            raise UsageError(f"There is no recipe {name!r}; there are {', '.join(recipe_names())}, or a .yaml file.")
    if not path.is_file():
        raise UsageError(f"There is no recipe file {path}.")
    return path


def _content(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """A recipe file over the recipe it is based on, if any; named after its file unless it says otherwise.

    A base is looked for beside the file, then in the package; so a file may have the name of the recipe it is based on.
    """
    above = (*above, path.resolve())
    yaml = optional("yaml", "train", "Reading a recipe")
    try:
        own = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path} cannot be read as YAML ({_fault(error)}).") from error
    if not isinstance(own, dict):
        raise UsageError(f"{path} holds no settings: a recipe has names with values under it, such as epochs: 3.")
    base = own.pop(_BASE, None)
    own = {"name": path.stem, **own}
    if base is None:
        return own
    found = [place for place in (path.parent / f"{base}.yaml", FOLDER / f"{base}.yaml") if place.is_file()]
    under = next((place for place in found or [_file(str(base))] if place.resolve() not in above), None)
    if under is None:
        raise UsageError(f"{path} is based on {base}, which is based on it.")
    return _merged(_content(under, above), own)


def _fault(error: Exception) -> str:
    """What is wrong, and in which line; PyYAML itself begins with what it was about to do."""
    problem, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
    return f"line {mark.line + 1}: {problem}" if problem and mark else first_line(error)


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(under)
    for name, value in over.items():
        below = both.get(name)
        both[name] = _merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return both


def _apply(content: dict[str, Any], change: str) -> None:
    name, sign, text = change.partition("=")
    if not sign:
        raise UsageError(f"--set {change}: say which setting gets which value, e.g. --set model.depth=6.")
    *sections, last = name.strip().split(".")
    for section in sections:
        content = content.setdefault(section, {})
        if not isinstance(content, dict):
            raise UsageError(f"--set {change}: {section} has no settings under it.")
    yaml = optional("yaml", "train", "Reading a recipe")
    try:
        content[last] = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"--set {change}: {text} is no value that YAML knows.") from error
