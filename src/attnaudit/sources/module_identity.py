"""The fingerprint of a module or another object given in memory: whatever decides what it computes.

A network with other code, or with another `scale` or `num_heads`, is another network even if all of its weights are the
same. Equal programs give equal fingerprints in every process: nothing depends on addresses, line numbers or the order
of sets. Code of installed packages is known by its name.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import functools
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnaudit.errors import WeightsError
from attnaudit.numerics.digest import content_digest
from attnaudit.sources.installed_code import is_installed_file, is_installed_module, is_of_another_package
from attnaudit.sources.weights import tensor_bytes, without_values

#: What torch keeps in a module beside what its author put there; weights, buffers and children are read by name.
_BOOKKEEPING = (
    frozenset(vars(nn.Module()))
    | {"_compiled_call_impl", "_is_torch_compile"}
    | {
        *("_c", "_concrete_type", "_initializing"),  # of TorchScript
    }
)
_HOOKS = ("_forward_pre_hooks", "_forward_hooks")
#: What a call of any module goes through.
_CALLING = frozenset({"__call__", "_wrapped_call_impl", "_call_impl", "__getattr__", "forward"})
_PLAIN = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)


def module_fingerprint(module: nn.Module) -> str:
    """A hash of weights, buffers, classes, code, hooks and plain attributes of a module and of all inside it.

    Raises:
        WeightsError: a tensor has no values, is sparse or quantised.
    """
    own = getattr(module, "_orig_mod", module)  # what torch.compile wraps
    return content_digest(_Description().of(own))


def object_fingerprint(value: Any) -> str:
    """A hash of the class, code and attributes of an object, such as a measure of a user's own."""
    return content_digest(_Description().of(value))


class _Description:
    """Writes down what an object is.

    Each object that it refers to has a number, in the order in which they are met, and is described after it and not
    inside it: code may refer to code that refers to code, deeper than Python can call itself.

    Keys and members of sets come in the order of their names, and those of one name in that of their own descriptions.
    They may refer to what they are in, as those of a registry do, so that no description within one has others in it.
    """

    def __init__(self, *, of_member: bool = False) -> None:
        self._of_member = of_member
        self._met: dict[int, int] = {}
        self._kept: list[Any] = []  # what has a number must not be freed: another object would get its address
        self._waiting: deque[Any] = deque()

    def of(self, value: Any) -> Iterator[bytes]:
        """The description of any value and of all it refers to, in pieces."""
        yield from self._written(value)
        while self._waiting:
            yield from self._object(self._waiting.popleft())

    def _written(self, value: Any) -> Iterator[bytes]:
        """A plain value itself, the number of any other."""
        if isinstance(value, enum.Enum):
            yield _text("enum", _name(type(value)), value.name)
        elif isinstance(value, _PLAIN):
            yield _text("value", type(value).__name__, repr(value))
        elif isinstance(value, np.generic):
            yield _text("value", str(value.dtype), repr(value.item()))
        elif isinstance(value, Path):
            yield _text("path", str(value))
        elif isinstance(value, type):
            yield from self._class(value)
        elif isinstance(value, tuple):  # constants may be one object or several equal ones: that says nothing
            yield from self._sequence(value)
        elif isinstance(value, frozenset):
            yield from self._set(value)
        elif isinstance(value, slice):
            yield from self._written((value.start, value.stop, value.step))
        elif id(value) in self._met:
            yield _text("met", self._met[id(value)])
        else:
            yield _text("new", len(self._met))
            self._met[id(value)] = len(self._met)
            self._kept.append(value)
            self._waiting.append(value)

    def _object(self, value: Any) -> Iterator[bytes]:
        if isinstance(value, nn.Module):
            yield from self._module(value)
        elif isinstance(value, Tensor):
            yield from _tensor(value)
        elif isinstance(value, np.ndarray):
            yield _text("array", str(value.dtype), value.shape)
            yield value.tobytes() if value.dtype != object else b""
        elif isinstance(value, dict | types.MappingProxyType):
            yield from self._mapping(value)
        elif isinstance(value, set):
            yield from self._set(value)
        elif isinstance(value, list | deque | range):
            yield from self._sequence(value)
        elif isinstance(value, functools.partial):
            yield _text("partial")
            yield from self._written((value.func, value.args, value.keywords))
        elif isinstance(value, staticmethod | classmethod):
            yield from self._written(value.__func__)
        elif isinstance(value, property):
            yield from self._written((value.fget, value.fset))
        elif isinstance(value, functools.cached_property):
            yield from self._written(value.func)
        elif isinstance(value, types.MethodType):
            yield _text("method")
            yield from self._written(value.__func__)
            yield from self._written(value.__self__)
        elif isinstance(value, types.FunctionType):
            yield from self._function(value)
        elif isinstance(value, types.CodeType):
            yield from self._code(value)
        else:
            yield from self._other(value)

    def _mapping(self, values: Mapping[Any, Any]) -> Iterator[bytes]:
        yield _text("mapping", _name(type(values)), len(values))
        for _, namesakes in _by_label(values):
            if len(namesakes) > 1 and not self._of_member:
                namesakes.sort(key=_own_digest)
            for key in namesakes:
                yield from self._written(key)
                yield from self._written(values[key])

    def _set(self, values: Set[Any]) -> Iterator[bytes]:
        """Namesakes have no numbers, since nothing says which of two equal ones came first."""
        yield _text("set", len(values))
        for label, namesakes in _by_label(values):
            if len(namesakes) == 1:
                yield from self._written(namesakes[0])
            else:
                yield _text(label, len(namesakes), *([] if self._of_member else sorted(map(_own_digest, namesakes))))

    def _sequence(self, values: Sequence[Any] | deque[Any]) -> Iterator[bytes]:
        yield _text("sequence", _name(type(values)), len(values))
        for entry in values:
            yield from self._written(entry)

    def _module(self, module: nn.Module) -> Iterator[bytes]:
        yield _text("module")
        yield from self._class(type(module))
        if isinstance(module, torch.jit.ScriptModule):
            yield _text("script", module.code)
        parameters = module.named_parameters(recurse=False, remove_duplicate=False)
        buffers = module.named_buffers(recurse=False, remove_duplicate=False)
        yield from self._named("tensors", {**dict(parameters), **dict(buffers)})
        yield from self._named("attributes", {n: v for n, v in vars(module).items() if n not in _BOOKKEEPING})
        for hooks in _HOOKS:
            yield from self._written(list(getattr(module, hooks, {}).values()))
        yield from self._named("children", dict(module._modules.items()))

    def _named(self, kind: str, values: Mapping[str, Any]) -> Iterator[bytes]:
        yield _text(kind, len(values))
        for name in sorted(values):
            yield _text(name)
            yield from self._written(values[name])

    def _class(self, own: type) -> Iterator[bytes]:
        """The name of a class, and the code of its methods, inherited ones included, that is not installed code."""
        yield _text("class", _name(own))
        if id(own) in self._met:
            return
        self._met[id(own)] = len(self._met)
        self._kept.append(own)
        for base in own.__mro__:
            if base is object or base.__module__ == "builtins":
                continue
            written_here = not is_installed_module(base.__module__)
            yield _text("base", _name(base))
            for name, value in sorted(vars(base).items()):
                if base is nn.Module and name not in _CALLING and is_of_another_package(value):
                    continue  # transformers adds `smart_apply` when it draws weights, to all modules there are
                if isinstance(value, _CALLABLES) or (written_here and isinstance(value, _CONSTANTS)):
                    if name.startswith("__") and not isinstance(value, _CALLABLES):
                        continue  # __module__, __doc__, __firstlineno__
                    yield _text(name)
                    yield from self._written(value)

    def _function(self, function: types.FunctionType) -> Iterator[bytes]:
        """Its code, what it closes over, its defaults, and the constants and functions of its file that it uses."""
        yield _text("function", function.__module__, function.__qualname__)
        installed = is_installed_file(function.__code__.co_filename)
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:  # empty: the function that fills it has not come to that
                continue
            if not installed or isinstance(content, types.FunctionType):  # a decorator of a package closes over ours
                yield from self._written(content)
        if installed:
            return
        yield from self._code(function.__code__)
        yield from self._written((function.__defaults__, function.__kwdefaults__))
        for name in sorted(_global_names(function.__code__)):
            if name in function.__globals__:
                yield _text(name)
                yield from self._written(function.__globals__[name])

    def _code(self, code: types.CodeType) -> Iterator[bytes]:
        """Instructions and constants, without the file and its lines."""
        yield _text("code", code.co_argcount, code.co_kwonlyargcount, code.co_flags)
        yield _text(code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        yield code.co_code
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                yield from self._code(constant)
            else:
                yield from self._written(constant)

    def _other(self, value: Any) -> Iterator[bytes]:
        """An object of some class: its attributes, if the class says that these are what it is made of."""
        own = type(value)
        yield _text("object", _name(own))
        if isinstance(value, types.ModuleType):
            yield _text(value.__name__)
        elif isinstance(value, torch.ScriptObject):
            raise WeightsError("The module has packed weights, which cannot be read: give it before it is quantised.")
        elif callable(value) and "__wrapped__" in getattr(value, "__dict__", {}):  # such as what lru_cache makes
            yield from self._written(value.__wrapped__)
        elif isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType | types.WrapperDescriptorType):
            yield _text(value.__name__)
        elif dataclasses.is_dataclass(value) or isinstance(value, types.SimpleNamespace | argparse.Namespace):
            yield from self._class(own)
            yield from self._named("attributes", vars(value) if hasattr(value, "__dict__") else _slots(value))
        elif callable(getattr(value, "to_dict", None)):  # such as the config of a transformers model
            yield from self._written(value.to_dict())
        elif not is_installed_module(own.__module__):
            yield from self._class(own)
            yield from self._named("attributes", {**_slots(value), **getattr(value, "__dict__", {})})


_CALLABLES = (types.FunctionType, staticmethod, classmethod, property, functools.cached_property)
_CONSTANTS = (*_PLAIN, enum.Enum, Tensor, np.ndarray, np.generic, list, tuple, dict, set, frozenset)


def _tensor(tensor: Tensor) -> Iterator[bytes]:
    yield _text("tensor", str(tensor.dtype), tuple(tensor.shape), str(tensor.layout))
    if fault := without_values(tensor):
        raise WeightsError(
            f"The module has a tensor of shape {tuple(tensor.shape)} that cannot be used: it is {fault}."
        )
    yield tensor_bytes(tensor)


def _own_digest(value: Any) -> str:
    """The digest of a key or of a member of a set by itself: where it stands then follows from what it is."""
    return content_digest(_Description(of_member=True).of(value))


def _by_label(members: Iterable[Any]) -> list[tuple[str, list[Any]]]:
    """Keys, or members of a set, in the order of their labels."""
    found: dict[str, list[Any]] = {}
    for member in members:
        found.setdefault(_label(member), []).append(member)
    return sorted(found.items())


def _label(value: Any) -> str:
    """A plain value itself, and the name of any other."""
    if isinstance(value, tuple | frozenset):
        labels = [_label(entry) for entry in value]
        return f"{_name(type(value))}{labels if isinstance(value, tuple) else sorted(labels)}"
    if isinstance(value, (*_PLAIN, np.generic, Path, enum.Enum)):
        return f"{_name(type(value))} {value!r}"
    return _name(value if isinstance(value, type | types.FunctionType) else type(value))


def _text(*parts: Any) -> bytes:
    """Plain parts with their lengths, so that what follows what is never in doubt."""
    return b"".join(b"%d:%b" % (len(part), part) for part in (repr(own).encode() for own in parts))


def _name(own: type | types.FunctionType) -> str:
    return f"{own.__module__}.{own.__qualname__}"


def _slots(value: Any) -> dict[str, Any]:
    names = [name for base in type(value).__mro__ for name in _slot_names(base)]
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _slot_names(base: type) -> Sequence[str]:
    names = vars(base).get("__slots__", ())
    return [names] if isinstance(names, str) else [name for name in names if name not in ("__dict__", "__weakref__")]


def _global_names(code: types.CodeType) -> set[str]:
    """The names that a function and those inside it may look up outside."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*(_global_names(own) for own in inner))
