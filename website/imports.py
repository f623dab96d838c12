"""What a file uses, however it gets it.

An import is seen as a statement (absolute, relative, in a function, under `TYPE_CHECKING`), as a call of
`importlib.import_module`, `__import__` or the project's own `optional`, and as a string in a table of lazy imports. A
dynamic import whose name cannot be read in the file counts as a use of `UNREADABLE`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

#: What a dynamic import uses when the file does not say which module it is.
UNREADABLE = "?"
_IMPORTERS = ("import_module", "__import__", "optional")
_HIDING = ("exec", "eval", "compile", "__builtins__")
#: Modules that could smuggle an import under another name: they may only be used through their attributes.
_DOORS = ("importlib", "builtins")
#: Functions that give back what is in their first argument.
_COLLECTING = ("list", "reversed", "set", "sorted", "tuple")
_MODULE_NAME = re.compile(r"[A-Za-z_]\w*(\.\w+)+")


@dataclass(frozen=True)
class Module:
    """A parsed file of a package."""

    name: str
    path: str
    tree: ast.Module
    lines: int

    @staticmethod
    def parsed(package: str, path: str, text: str) -> Module:
        """The file of this path below a package, such as `kernel/gram.py`."""
        parts = [package, *path.removesuffix(".py").split("/")]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        return Module(name, path, ast.parse(text), len(text.splitlines()))

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.name if self.path.endswith("__init__.py") else self.name.rpartition(".")[0]

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Everything in the file, in whatever scope."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def bindings(self) -> dict[str, set[str]]:
        """The dotted names behind each name that an import statement binds."""
        found: dict[str, set[str]] = {}
        for node in self.nodes:
            for bound, name, _ in _imported(node, self.package):
                found.setdefault(bound, set()).add(name)
        return found

    @cached_property
    def lazy(self) -> dict[str, str]:
        """Names by the string that says where they live: `{"Run": "attnaudit.report.run"}` in a dict."""
        return {
            key.value: f"{value.value}.{key.value}"
            for node in self.nodes
            if isinstance(node, ast.Dict)
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
            if isinstance(value, ast.Constant) and isinstance(value.value, str)
            if _MODULE_NAME.fullmatch(value.value)
        }

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The classes it defines, at any depth."""
        return tuple(node.name for node in self.nodes if isinstance(node, ast.ClassDef))


class Reader:
    """The uses that one file shows, before they are followed through other files."""

    def __init__(self, module: Module, inside: Callable[[str], bool]) -> None:
        self.module = module
        self.inside = inside
        self.values = _assigned(module.nodes)
        importers = [bound for bound, names in module.bindings.items() if _last(names) & set(_IMPORTERS)]
        self.importers = {*_IMPORTERS, *importers}

    def names(self) -> Iterator[tuple[str, int]]:
        """Every dotted name that is used, with its line."""
        called = {id(node.func) for node in self.module.nodes if isinstance(node, ast.Call)}
        below = {id(node.value) for node in self.module.nodes if isinstance(node, ast.Attribute)}
        below |= {id(asked) for node in self.module.nodes for asked in _asked(node)}
        for node in self.module.nodes:
            for name in self._names(node, called, below):
                yield name, getattr(node, "lineno", 0)

    def _names(self, node: ast.AST, called: set[int], below: set[int]) -> Iterator[str]:
        for _, _, name in _imported(node, self.module.package):
            yield name
        if isinstance(node, ast.Call) and self._imports(node.func):
            yield from self._dynamic(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value in (*_IMPORTERS[:2], "__builtins__"):
                yield UNREADABLE
            if _MODULE_NAME.fullmatch(node.value) and self.inside(node.value):
                yield node.value
        elif isinstance(node, ast.Attribute):
            yield f".{node.attr}"
            if id(node) not in below:
                yield from self._chain(node)
            if self._imports(node) and id(node) not in called:
                yield UNREADABLE
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield from self._plain(node, called, below)

    def _imports(self, node: ast.expr) -> bool:
        """Whether this is a function that imports what its argument names."""
        if isinstance(node, ast.Attribute):
            return node.attr in _IMPORTERS
        return isinstance(node, ast.Name) and node.id in self.importers

    def _plain(self, node: ast.Name, called: set[int], below: set[int]) -> Iterator[str]:
        bound = self.module.bindings.get(node.id, set())
        hidden = self._imports(node) and id(node) not in called
        if hidden or node.id in _HIDING or (bound & set(_DOORS) and id(node) not in below):
            yield UNREADABLE
        if not bound:
            yield f"builtins.{node.id}"

    def _chain(self, node: ast.Attribute) -> Iterator[str]:
        """`np.linalg.norm` with `np` bound by an import, as the name it stands for."""
        attributes: list[str] = []
        base: ast.expr = node
        while isinstance(base, ast.Attribute):
            attributes.insert(0, base.attr)
            base = base.value
        if isinstance(base, ast.Name):
            for name in self.module.bindings.get(base.id, set()):
                yield ".".join([name, *attributes])

    def _dynamic(self, call: ast.Call) -> Iterator[str]:
        given = [*call.args, *(word.value for word in call.keywords if word.arg in ("name", "module"))]
        names = _text(given[0], self.values) if given else None
        for name in names or {UNREADABLE}:
            level = len(name) - len(name.lstrip("."))
            yield f"{_above(self.module.package, level)}.{name[level:]}" if level else name


def _imported(node: ast.AST, package: str) -> Iterator[tuple[str, str, str]]:
    """For every alias of an import statement: the name it binds, what this name stands for, and what is imported."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            yield (alias.asname, alias.name, alias.name) if alias.asname else (first, first, alias.name)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            base = ".".join(part for part in (_above(package, node.level), base) if part)
        for alias in node.names:
            yield alias.asname or alias.name, f"{base}.{alias.name}", f"{base}.{alias.name}"


def _above(package: str, level: int) -> str:
    return package.rsplit(".", level - 1)[0] if level > 1 else package


def _asked(node: ast.AST) -> list[ast.expr]:
    """`name in sys.modules` asks whether a module is loaded, and imports nothing."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[-1], ast.In | ast.NotIn):
        return node.comparators[-1:]
    return []


def _last(names: set[str]) -> set[str]:
    return {name.rpartition(".")[2] for name in names}


def _assigned(nodes: tuple[ast.AST, ...]) -> dict[str, list[ast.expr | None]]:
    """What each name may stand for; None for a parameter, which may be anything."""
    found: dict[str, list[ast.expr | None]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.For | ast.comprehension):
            pairs = [(node.target, node.iter)]
        else:
            pairs = []
        for target, value in pairs:
            for name in ast.walk(target):
                if isinstance(name, ast.Name):
                    found.setdefault(name.id, []).append(value)
        if isinstance(node, ast.arg):
            found.setdefault(node.arg, []).append(None)
    return found


def _text(node: ast.expr | None, values: dict[str, list[ast.expr | None]], depth: int = 0) -> set[str] | None:
    """The strings an expression may be, `*` for a part that cannot be read; None if nothing of it can."""
    if node is None or depth > 5:
        return None
    if isinstance(node, ast.Constant):
        return {node.value} if isinstance(node.value, str) else set()
    if isinstance(node, ast.Name):
        return _union([_text(value, values, depth + 1) for value in values.get(node.id, [None])])
    if isinstance(node, ast.Subscript):
        return _text(node.value, values, depth)
    if isinstance(node, ast.Call):
        plain = isinstance(node.func, ast.Name) and node.func.id in _COLLECTING and node.args
        return _text(node.args[0], values, depth) if plain else None
    if isinstance(node, ast.Dict):
        return _union([_text(value, values, depth) for value in node.values])
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return _union([_text(value, values, depth) for value in node.elts])
    if isinstance(node, ast.IfExp):
        return _union([_text(node.body, values, depth), _text(node.orelse, values, depth)])
    parts: list[ast.expr] = []
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    whole = {""}
    for part in parts:
        whole = {start + end for start in whole for end in _text(part, values, depth) or {"*"}}
    return None if any(text.startswith("*") for text in whole) or whole == {""} else whole


def _union(found: list[set[str] | None]) -> set[str] | None:
    known = [names for names in found if names is not None]
    return set().union(*known) if len(known) == len(found) else None
