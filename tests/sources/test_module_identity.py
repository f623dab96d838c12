"""A module in memory is told from every other that could compute something else, and equal programs agree."""

import functools
import os
import subprocess
import sys
import textwrap
import types
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attnaudit.errors import WeightsError
from attnaudit.sources.module_identity import module_fingerprint


class Attention(nn.Module):
    """Two heads; everything but the weights is decided by plain attributes."""

    def __init__(self, scale=0.5, heads=2):
        super().__init__()
        torch.manual_seed(0)
        self.qkv = nn.Linear(8, 24)
        self.scale, self.heads = scale, heads
        self.options = {"names": {"a", "b"}, "sizes": [1, 2]}

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, scale=self.scale)


class Doubled(Attention):
    def forward(self, x):
        return 2 * super().forward(x)


class Tripled(Attention):
    def forward(self, x):
        return 3 * super().forward(x)


Tripled.__qualname__ = Doubled.__qualname__  # as when the file was edited between two runs


@dataclass
class Options:
    temperature: float = 1.0


def changed(change):
    module = Attention()
    change(module)
    return module


def nudge(module):
    module.qkv.weight.data[0, 0] += 1e-6


def buffer(module):
    module.register_buffer("mask", torch.ones(2), persistent=False)


def hook(module):
    module.qkv.register_forward_hook(lambda own, args, output: output * 2)


def method(module):
    module.forward = types.MethodType(lambda self, x: self.qkv(x), module)


CHANGES = {
    "a weight": nudge,
    "a buffer that is not saved": buffer,
    "scale": lambda module: setattr(module, "scale", 0.25),
    "heads": lambda module: setattr(module, "heads", 4),
    "type of a number": lambda module: setattr(module, "heads", 2.0),
    "a nested option": lambda module: module.options["names"].add("c"),
    "an option of a child": lambda module: setattr(module.qkv, "gain", 2),
    "a tensor beside the weights": lambda module: setattr(module, "bias", torch.ones(1)),
    "an object": lambda module: setattr(module, "chosen", Options()),
    "a hook": hook,
    "forward of one object": method,
    "a function": lambda module: setattr(module, "activation", F.relu),
    "children that are not registered": lambda module: setattr(module, "more", [nn.Linear(1, 1)]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_decides_the_numbers_is_part_of_the_fingerprint(change):
    assert module_fingerprint(changed(CHANGES[change])) != module_fingerprint(Attention())


def test_equal_modules_have_equal_fingerprints_also_after_they_ran():
    module = Attention()
    before = module_fingerprint(module)
    module(torch.zeros(1, 3, 8))
    module.eval()
    assert module_fingerprint(module) == before == module_fingerprint(Attention())


def test_other_code_under_the_same_name_is_another_module():
    assert Doubled.__qualname__ == Tripled.__qualname__
    assert module_fingerprint(Doubled()) != module_fingerprint(Tripled())


def times(by):
    return lambda x: x * by


def with_activation(activation):
    return changed(lambda module: setattr(module, "activation", activation))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x + 1, lambda x: x + 2),
        (functools.partial(torch.clamp, min=0), functools.partial(torch.clamp, min=1)),
        (lambda x, by=1: x * by, lambda x, by=2: x * by),
        (times(1), times(2)),
        (torch.no_grad()(times(1)), torch.no_grad()(times(2))),
        (F.relu, F.gelu),
        (Options(1.0), Options(2.0)),
        (Options(1.0), Attention()),
    ],
    ids=["code", "partial", "default", "closure", "decorated", "installed", "values", "class"],
)
def test_functions_and_objects_are_told_apart_by_what_they_do(one, other):
    assert module_fingerprint(with_activation(one)) != module_fingerprint(with_activation(other))
    assert module_fingerprint(with_activation(one)) == module_fingerprint(with_activation(one))


def test_a_constant_that_forward_reads_is_part_of_it(monkeypatch):
    module = with_activation(lambda x: x * SCALE)
    before = module_fingerprint(module)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert module_fingerprint(module) != before


SCALE = 2.0


def test_a_method_of_an_installed_class_that_is_replaced_is_noticed(monkeypatch):
    before = module_fingerprint(Attention())
    monkeypatch.setattr(nn.Linear, "forward", lambda self, x: F.linear(x, 2 * self.weight, self.bias))
    assert module_fingerprint(Attention()) != before


def test_what_another_package_adds_to_all_modules_is_not_part_of_the_fingerprint(monkeypatch):
    before = module_fingerprint(Attention())
    monkeypatch.setattr(nn.Module, "smart_apply", textwrap.dedent, raising=False)
    assert module_fingerprint(Attention()) == before


def test_a_call_that_another_package_replaced_is_part_of_the_fingerprint(monkeypatch):
    before = module_fingerprint(Attention())
    monkeypatch.setattr(nn.Module, "__call__", textwrap.dedent)
    assert module_fingerprint(Attention()) != before


def test_compiling_does_not_make_another_module():
    assert module_fingerprint(torch.compile(Attention())) == module_fingerprint(Attention())


def test_attributes_may_refer_to_each_other():
    module = Attention()
    module.itself, module.options["owner"] = [module], module
    assert module_fingerprint(module) != module_fingerprint(Attention())


REGISTRY = {}


def registered(by):
    """A function that looks itself up, and stands in the table under which it is looked up."""

    def activation(x):
        return x * REGISTRY[activation]

    REGISTRY[activation] = by
    return activation


class Named:
    """An object that knows which table and which set it is in."""

    def __init__(self, by):
        self.by, self.table, self.group = by, {self: by}, {self}

    def __call__(self, x):
        return x * self.by


@pytest.mark.parametrize("kind", [registered, Named])
def test_keys_and_members_may_refer_to_what_they_are_in(monkeypatch, kind):
    def fingerprint(*factors):
        monkeypatch.setitem(globals(), "REGISTRY", {})
        activations = [kind(by) for by in factors]
        return module_fingerprint(changed(lambda module: setattr(module, "activations", activations)))

    assert fingerprint(2.0, 3.0) == fingerprint(2.0, 3.0)
    assert len({fingerprint(2.0, 3.0), fingerprint(2.0, 4.0), fingerprint(3.0, 2.0), fingerprint(2.0)}) == 4


SCRIPT = """
import torch, enum
from attnaudit.sources import wrap_module

class Kind(enum.Enum):
    A = 1

class Key:
    everything = {}

    def __init__(self, own):
        self.own, self.others = own, {"s", "t", own}
        self.everything[own] = self

def helper(x):
    return x if str(x) in {"one", "two", "three"} else x * CONSTANT

CONSTANT = 2.0

class Net(torch.nn.Module):
    words = {"query", "key", "value", "more"}

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.TransformerEncoderLayer(8, 2, 8)
        self.kind, self.sets = Kind.A, {frozenset({"a", "b"}): {"x", "y", "z"}, frozenset({("c", Kind.A), "d"}): 1}
        self.table = {Key(own): own for own in {"p", "q", "r"}}
        self.act = lambda x: helper(x)

    def forward(self, x):
        return self.act(self.layer(x))

print(wrap_module(Net()).fingerprint)
"""


def test_equal_programs_agree_in_every_process(tmp_path):
    found = []
    for seed, lines in (("1", ""), ("2", "\n# moved down\n\n")):
        script = tmp_path / f"program{seed}.py"
        script.write_text(lines + textwrap.dedent(SCRIPT))
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, str(script)]
        found.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert found[0] == found[1] != ""


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda module: module.to("meta"), "meta device"),
        (lambda module: module.register_buffer("graph", torch.eye(3).to_sparse()), "sparse"),
    ],
)
def test_a_tensor_without_plain_values_is_refused(change, named):
    with pytest.raises(WeightsError, match=named):
        module_fingerprint(changed(change))


def test_complex_and_half_tensors_have_a_fingerprint():
    turned = changed(lambda module: module.register_buffer("angles", torch.ones(2) + 1j))
    other = changed(lambda module: module.register_buffer("angles", torch.ones(2) - 1j))
    assert module_fingerprint(turned) != module_fingerprint(other)
    halves = {module_fingerprint(Attention().to(dtype)) for dtype in (torch.bfloat16, torch.float16, torch.float32)}
    assert len(halves) == 3


def deep(end, levels=5000):
    """Functions that close over one another, deeper than Python can call itself."""
    inner = (lambda value: lambda: value)(end)
    for _ in range(levels):
        inner = (lambda own: lambda: own())(inner)
    return inner


def test_code_that_refers_to_code_is_followed_to_any_depth():
    first, same, other = (changed(lambda m, end=end: setattr(m, "activation", deep(end))) for end in (1, 1, 2))
    assert module_fingerprint(first) == module_fingerprint(same)
    assert module_fingerprint(first) != module_fingerprint(other)
