"""The API reference: every public name of every public package, from its docstring."""

from __future__ import annotations

import importlib
import inspect

#: Packages whose `__all__` is what a user may rely on.
PACKAGES = (
    "attnaudit",
    "attnaudit.attention",
    "attnaudit.attention.functional",
    "attnaudit.capture",
    "attnaudit.claims",
    "attnaudit.gaussian",
    "attnaudit.kernel",
    "attnaudit.theories",
    "attnaudit.measures",
    "attnaudit.measures.references",
    "attnaudit.robustness",
    "attnaudit.robustness.attacks",
    "attnaudit.training",
    "attnaudit.errors",
)


def reference_pages() -> dict[str, str]:
    """The pages by path."""
    return {f"api/{name}.md": _page(name) for name in PACKAGES}


def _page(package: str) -> str:
    module = importlib.import_module(package)
    heading = "# " + ("attnaudit" if package == "attnaudit" else package.removeprefix("attnaudit."))
    introduction = (inspect.getdoc(module) or "").partition(">>>")[0].strip()
    return "\n\n".join([heading, introduction, *(f"::: {home}" for home in _homes(package))]) + "\n"


def _homes(package: str) -> list[str]:
    """Where each public name is defined: classes and functions have docstrings there, plain values do not."""
    module = importlib.import_module(package)
    public = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if getattr(value, "__module__", None) == package
    ]
    functions = getattr(module, "_FUNCTIONS", {})  # packages that can be called as a function of the same name
    homes = {name: importlib.import_module(functions[name]) if name in functions else module for name in public}
    objects = {name: inspect.unwrap(getattr(home, name)) for name, home in homes.items()}
    return [
        f"{value.__module__}.{value.__qualname__}"
        for name, value in objects.items()
        if not name.startswith("_") and (inspect.isclass(value) or inspect.isfunction(value))
    ]
