"""Recipe files: found by name, merged with their base, and changed setting by setting."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnaudit.errors import UsageError, first_line, unknown
from attnaudit.extras import optional
from attnaudit.records import json_file
from attnaudit.records.json_file import shortened
from attnaudit.records.recipe import AnyRecipe, ImageRecipe, SegmentationRecipe, SentenceRecipe, TextRecipe

FOLDER = Path(__file__).parent / "recipes"
_BASE = "base"
_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$")
#: No recipe needs more; a few lines of YAML whose aliases repeat each other may come to billions of values.
_MOST_BYTES, _MOST_VALUES, _LONGEST_NAME = 1 << 20, 10_000, 200
_KINDS: dict[str, type[AnyRecipe]] = {
    "images": ImageRecipe,
    "segmentation": SegmentationRecipe,
    "text": TextRecipe,
    "sentences": SentenceRecipe,
}


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read_recipe(name: str, changes: Sequence[str] = ()) -> AnyRecipe:
    """A recipe of the package by name, or a YAML file, with changes such as `model.depth=6`.

    Raises:
        UsageError: the name is unknown, or a setting is invalid.
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
            raise unknown("recipe", name, recipe_names())
    if not path.is_file():
        raise UsageError(f"The recipe file {path} does not exist.")
    return path


def _content(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The content of a recipe file, merged with its base, if any; by default it is named after its file.

    A base is searched beside the file, then in the package, so a file may have the name of its base.
    """
    above = (*above, path.resolve())
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path} is too large for a recipe.")
        own = _loaded(path.read_text())
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}).") from error
    except ValueError as error:
        raise UsageError(f"{path} cannot be read as YAML ({first_line(error)}).") from error
    if not isinstance(own, dict):
        raise UsageError(f"{path} must hold settings by name, such as epochs: 3.")
    base = own.pop(_BASE, None)
    if not isinstance(base, str | None) or len(base or "") > _LONGEST_NAME:
        raise UsageError(f"{path}: base must be the name of a recipe, got {shortened(base)}.")
    own = {"name": path.stem, **own}
    if base is None:
        return own
    found = [place for place in (path.parent / f"{base}.yaml", FOLDER / f"{base}.yaml") if place.is_file()]
    under = next((place for place in found or [_file(str(base))] if place.resolve() not in above), None)
    if under is None:
        raise UsageError(f"{path} and {base} are based on each other: remove base from one of them.")
    return _merged(_content(under, above), own)


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(under)
    for name, value in over.items():
        below = both.get(name)
        both[name] = _merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return both


def _apply(content: dict[str, Any], change: str) -> None:
    name, sign, text = change.partition("=")
    if not sign:
        raise UsageError(f"--set {change}: give a name and a value, such as --set model.depth=6.")
    *sections, last = name.strip().split(".")
    for section in sections:
        content = content.setdefault(section, {})
        if not isinstance(content, dict):
            raise UsageError(f"--set {change}: {section} is a value and has no settings.")
    try:
        content[last] = _loaded(text)
    except ValueError as error:
        raise UsageError(f"--set {change}: {text} cannot be read as YAML.") from error


def _yaml() -> Any:
    return optional("yaml", "train", "Reading a recipe")


def _loaded(text: str) -> Any:
    """YAML with the numbers of YAML 1.2: PyYAML would read 1e-3, without a point, as text.

    Raises:
        ValueError: it is not YAML, or holds too much; the message has the line, if it is known.
    """
    yaml = _yaml()
    loader: Any = type("RecipeLoader", (yaml.SafeLoader,), {"compose_mapping_node": _mapping_without_repetition})
    loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+.0123456789"))
    try:
        content = yaml.load(text, Loader=loader)
    except RecursionError as error:
        raise ValueError("its values are nested too deeply") from error
    except yaml.YAMLError as error:  # without the context that PyYAML puts first
        problem, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
        raise ValueError(f"line {mark.line + 1}: {problem}" if problem and mark else first_line(error)) from error
    except (ArithmeticError, LookupError, TypeError, AttributeError) as error:  # of a value that does not fit its tag
        raise ValueError(first_line(error)) from error
    _check_amount(content)
    return content


def _mapping_without_repetition(loader: Any, anchor: str | None) -> Any:
    """PyYAML would take the last of several settings of one name, and drop the others."""
    node = _yaml().SafeLoader.compose_mapping_node(loader, anchor)
    seen = set()
    for key, _ in node.value:
        if isinstance(key.value, str) and key.value in seen:
            raise _yaml().constructor.ConstructorError(None, None, f"{key.value} is set twice", key.start_mark)
        seen.add(str(key.value))
    return node


def _check_amount(content: Any) -> None:
    """Refuse more values than a recipe can have, aliases counted as often as they occur."""
    waiting, seen = [content], 0
    while waiting:
        value = waiting.pop()
        seen += 1
        if seen > _MOST_VALUES:
            raise ValueError(f"it holds more than {_MOST_VALUES:,} values")
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list | tuple | set):
            waiting += value
