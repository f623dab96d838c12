"""The rules of the house: who may import whom, who may touch files and models, and who may print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from website.imports import UNREADABLE
from website.package import Package, Use

LEAVES = ("_version", "errors", "defaults", "protocol", "extras", "display", "numerics")
PURE = ("kernel", "theories", "measures", "statistics")
PRODUCERS = ("audit", "training", "robustness", "gaussian", "cost")
#: From the ground up: a package imports only those before it.
ORDER = (
    *LEAVES,
    "records",
    "attention",
    "sources",
    "capture",
    *PURE,
    *PRODUCERS,
    "papers",
    "claims",
    "report",
    "api",
    "cli",
)
#: What a package may not import although it comes before it.
CLOSED = {
    "capture": ("attention", "sources"),
    **dict.fromkeys(PURE, ("sources",)),
    **dict.fromkeys(PRODUCERS, PRODUCERS),
    "cli": ("attention", "sources", "capture", *PURE, *PRODUCERS, "papers", "claims"),
}
#: Parts of a package that keep a rule of their own.
EXPERIMENTS = "gaussian.experiments"

MODEL_LIBRARIES = ("timm", "transformers")
KNOWS_MODELS = ("sources", "capture", "attention.swapping", "training")
PRINTS = ("cli", "report")
PRINTING = (
    "builtins.print",
    "rich",
    "typer",
    "click",
    "sys.stdout",
    "sys.stderr",
    "sys.__stdout__",
    "sys.__stderr__",
    "pprint.pp",
    "pprint.pprint",
    "traceback.print_exc",
    "traceback.print_exception",
    "traceback.print_stack",
    "tqdm",
    ".print",
)
#: Ways to import that no reader of the file can follow.
HIDDEN = (
    UNREADABLE,
    "sys.modules",
    "importlib.machinery",
    "importlib.reload",
    "importlib.util.module_from_spec",
    "importlib.util.spec_from_file_location",
    ".exec_module",
    ".load_module",
    "pkgutil",
    "runpy",
    "zipimport",
)
#: All that mathematics needs from outside; what is not listed, such as pathlib, it may not have.
MATHEMATICS = (
    "__future__",
    "abc",
    "bisect",
    "builtins",
    "collections",
    "contextlib",
    "copy",
    "ctypes",
    "dataclasses",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "importlib",
    "inspect",
    "itertools",
    "jaxtyping",
    "math",
    "numpy",
    "operator",
    "scipy",
    "sklearn",
    "statistics",
    "threadpoolctl",
    "torch",
    "triton",
    "types",
    "typing",
    "warnings",
)
#: Modules that read or write files, or look at the machine.
FILE_MODULES = (
    *("glob", "io", "mmap", "os", "pathlib", "pickle", "shutil", "socket", "sqlite3", "subprocess", "sys", "tarfile"),
    *("tempfile", "urllib", "zipfile", "PIL", "safetensors"),
)
#: What else reads or writes files: functions of libraries that mathematics needs, and methods.
FILES = (
    *FILE_MODULES,
    *("importlib.metadata", "importlib.resources"),
    *(f"builtins.{name}" for name in ("input", "open")),
    *(f"numpy.{name}" for name in ("fromfile", "genfromtxt", "load", "loadtxt", "memmap", "save", "savetxt", "savez")),
    *(f"pyarrow.{name}" for name in ("csv", "dataset", "feather", "fs", "json", "memory_map", "OSFile", "parquet")),
    *(f"torch.{name}" for name in ("from_file", "hub", "jit.load", "jit.save", "load", "save", "utils.data")),
    *("numpy.savez_compressed", "scipy.io", "sklearn.datasets"),
    *(f".{name}" for name in ("mkdir", "open", "read_bytes", "read_text", "tofile", "write_bytes", "write_text")),
)


@dataclass(frozen=True, order=True)
class Violation:
    """A module uses what its place in the house does not allow."""

    module: str
    used: str
    line: int

    def __str__(self) -> str:
        return f"{self.module} -> {self.used}"


def violations(package: Package) -> list[Violation]:
    """Every breach of the rules in a package laid out like this one, each once."""
    house = _House(package)
    first: dict[str, Violation] = {}
    for module in package.modules:
        for use in package.uses(module):
            for used in house.breaches(use):
                violation = Violation(module, used, use.line)
                known = first.setdefault(str(violation), violation)
                first[str(violation)] = min(known, violation)
    return sorted(first.values())


def room(package: Package, module: str) -> str:
    """The part of the house that a module is in: a package or a single file; empty for the front door."""
    return module.removeprefix(package.name).lstrip(".").partition(".")[0]


class _House:
    def __init__(self, package: Package) -> None:
        self.package = package
        self.touching: dict[str, bool] = {}

    def breaches(self, use: Use) -> Iterator[str]:
        here = room(self.package, use.module)
        if here in ("", "__main__"):  # the front door and the program hand on everything
            return
        home = self.package.home(use.name)
        pure = self._is_in(use.module, (*PURE, "gaussian")) and not self._is_in(use.module, (EXPERIMENTS,))
        if home is not None:
            there = room(self.package, home)
            if there != here and not _may_import(here, there):
                yield there or self.package.name
            elif pure and there not in PURE and self._touches_files(home):
                yield home.removeprefix(f"{self.package.name}.")
            return
        if _within(use.name, HIDDEN) and here != "extras":
            yield use.name
        if _within(use.name, MODEL_LIBRARIES) and not self._is_in(use.module, KNOWS_MODELS):
            yield use.name.partition(".")[0]
        if _within(use.name, PRINTING) and here not in PRINTS:
            yield use.name
        if pure and (_within(use.name, FILES) or set(use.name.split(".")[1:-1]) & set(FILE_MODULES)):
            yield use.name if use.name.startswith(".") else use.name.removeprefix("builtins.")
        elif pure and not use.name.startswith(".") and not _within(use.name, (*MATHEMATICS, UNREADABLE)):
            yield use.name.partition(".")[0]

    def _touches_files(self, module: str) -> bool:
        """Whether a module, or one that it imports, reads or writes files: no way round through a neighbour."""
        if module not in self.touching:
            self.touching[module] = False  # what is being looked at is not looked at again
            uses = self.package.uses(module)
            homes = {home for use in uses if (home := self.package.home(use.name)) is not None}
            direct = any(_within(use.name, FILES) for use in uses if not use.name.startswith("."))
            self.touching[module] = direct or any(self._touches_files(home) for home in sorted(homes))
        return self.touching[module]

    def _is_in(self, module: str, places: tuple[str, ...]) -> bool:
        return _within(module, tuple(f"{self.package.name}.{place}" for place in places))


def _may_import(here: str, there: str) -> bool:
    if here in LEAVES:
        return there in LEAVES
    known = here in ORDER and there in ORDER
    return known and ORDER.index(there) < ORDER.index(here) and there not in CLOSED.get(here, ())


def _within(name: str, roots: tuple[str, ...]) -> bool:
    return any(name == root or name.startswith(f"{root}.") for root in roots)
