"""Recipe files: found by name, laid over the one they are based on, changed setting by setting."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnaudit.errors import UsageError, first_line
from attnaudit.extras import optional
from attnaudit.records import json_file
from attnaudit.records.recipe import ImageRecipe, TextRecipe

FOLDER = Path(__file__).parent / "recipes"
_BASE = "base"
_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$")
_KINDS: dict[str, type[ImageRecipe] | type[TextRecipe]] = {"images": ImageRecipe, "text": TextRecipe}


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read_recipe(name: str, changes: Sequence[str] = ()) -> ImageRecipe | TextRecipe:
    """A recipe of the package by name, or a YAML file, with changes such as `model.depth=6`; `task` says which kind.

    Raises:
        UsageError: there is none of that name, or a setting does not fit.
    """
    content = _content(_file(name))
    for change in changes:
        _apply(content, change)
    where, task = f"recipe {content['name']}", content.get("task", "images")
    if task not in [*_KINDS]:
        raise UsageError(f"{where}: task must be one of {', '.join(_KINDS)}, got {task!r}.")
    return json_file.parse(_KINDS[task], content, where)


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
    yaml = _yaml()
    try:
        own = _loaded(path.read_text())
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
    yaml = _yaml()
    try:
        content[last] = _loaded(text)
    except yaml.YAMLError as error:
        raise UsageError(f"--set {change}: {text} cannot be read as YAML.") from error


def _yaml() -> Any:
    return optional("yaml", "train", "Reading a recipe")


def _loaded(text: str) -> Any:
    """YAML 1.2's numbers in PyYAML, which otherwise reads 1e-3, without a point, as text."""
    yaml = _yaml()
    loader: Any = type("RecipeLoader", (yaml.SafeLoader,), {})
    loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+.0123456789"))
    return yaml.load(text, Loader=loader)
