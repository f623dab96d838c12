"""A package as its files show it, and what each of its modules uses, followed to where it lives.

A package hands on names from elsewhere: `from attnaudit import Run` is a use of the module that `Run` is defined in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from website.imports import Module, Reader


@dataclass(frozen=True, order=True)
class Use:
    """A dotted name that a module uses: `attnaudit.kernel.gram`, `pathlib.Path`, `builtins.open` or `.write_text`."""

    module: str
    line: int
    name: str


class Package:
    """All modules of a Python package."""

    def __init__(self, name: str, texts: Mapping[str, str]) -> None:
        """Of the texts of its files by their path below the package, such as `kernel/gram.py`."""
        self.name = name
        modules = (Module.parsed(name, path, text) for path, text in sorted(texts.items()))
        self.modules = {module.name: module for module in modules}
        self._uses: dict[str, list[Use]] = {}

    @staticmethod
    def read(folder: Path) -> Package:
        """The package in this folder."""
        texts = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.py")}
        return Package(folder.name, texts)

    def uses(self, module: str) -> list[Use]:
        """What a module uses of other modules of the package and of the world outside, each name once."""
        if module not in self._uses:
            self._uses[module] = self._read(module)
        return self._uses[module]

    def _read(self, module: str) -> list[Use]:
        reader = Reader(self.modules[module], lambda name: self.home(name) not in (None, self.name))
        lines: dict[str, int] = {}
        for name, line in reader.names():
            lines[name] = min(line, lines.get(name, line))
        return sorted({Use(module, line, name) for found, line in lines.items() for name in self._followed(found)})

    def home(self, name: str) -> str | None:
        """The module of the package that a dotted name is in, or None if it is from outside."""
        while name:
            if name in self.modules:
                return name
            name = name.rpartition(".")[0]
        return None

    def _followed(self, used: str) -> Iterator[str]:
        """The name's home, and those that hide behind it because a package hands on names of others."""
        seen: set[str] = set()
        pending = [used]
        while pending:
            name = pending.pop()
            home = self.home(name)
            if name in seen:
                continue
            seen.add(name)
            if home is None:
                yield name
                continue
            first, _, rest = name[len(home) + 1 :].partition(".")
            behind = self._behind(home, first)
            pending += [f"{target}.{rest}" if rest else target for target in behind]
            if name == home and name != self.name:  # its package may bind the same name to something else
                package, _, last = name.rpartition(".")
                pending += self._behind(package, last)
            if home != self.name or not behind:  # a name of the front door is used where it lives, not at the door
                yield home

    def _behind(self, home: str, attribute: str) -> set[str]:
        module = self.modules[home]
        if attribute == "*":
            return {name for names in module.bindings.values() for name in names} | set(module.lazy.values())
        if not attribute:
            return set()
        lazy = {module.lazy[attribute]} if attribute in module.lazy else set()
        return module.bindings.get(attribute, set()) | lazy
