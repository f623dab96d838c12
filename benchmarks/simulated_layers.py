"""Layers of attention made by a generator whose truth is known: what their values are, and in which heads.

Inputs of one layer are draws of one distribution: X_i = (T + s_i Z_i) C^½ with tokens T that they share, such as
positions, Z_i of their own, one covariance C, and a size s_i that makes some of them harder than others (log-normal;
Student's t with two degrees of freedom in its exponent where tails shall be heavy). Queries and keys are projections of
X_i with one matrix per head. Values are what a case says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure_input import PredictedValues
from attnaudit.measures.references.base import with_values
from attnaudit.numerics.randomness import numpy_generator
from attnaudit.protocol import Protocol
from attnaudit.records.head_id import HeadId
from attnaudit.theories.fitting import FittedTheory
from attnaudit.theories.registry import THEORIES

MODEL, HEADS = "simulated", 10
#: Values of all heads and inputs.
Values = Float[Tensor, "inputs heads tokens dim"]
Draw = Callable[..., Tensor]


@dataclass(frozen=True)
class Shape:
    """Of a layer: four tokens or more per dimension of a head, so that theories are identifiable."""

    inputs: int
    heads: int = HEADS
    tokens: int = 32
    width: int = 16
    dim: int = 8


@dataclass(frozen=True)
class Given:
    """What values are made from: heads whose values are not set yet, and random numbers."""

    heads: Heads
    shape: Shape
    draw: Draw

    @property
    def source(self) -> Float[Tensor, "inputs 1 tokens width"]:
        """The inputs of the layer, the same for all heads."""
        assert self.heads.source is not None
        return self.heads.source[:, None]

    def predicted(self, theory: str) -> Values:
        """The values that a theory says."""
        found = PredictedValues(KeyKernel(self.heads), THEORIES[theory]).prediction
        values = found.values.double() * torch.exp(found.log_scale.double())[:, None, None]
        return values.unflatten(0, (self.shape.inputs, self.shape.heads))


def layer(values: Callable[[Given], Values], shape: Shape, seed: int, *, heavy_tails: bool = False) -> Heads:
    """A layer with these values; another seed is another network with other inputs."""
    generator = numpy_generator(f"simulated/{seed}")

    def draw(*size: int) -> Tensor:
        return torch.from_numpy(generator.standard_normal(size))

    spectrum = torch.arange(1, shape.width + 1, dtype=torch.float64) ** -0.5
    root = torch.linalg.qr(draw(shape.width, shape.width)).Q * spectrum
    tails = generator.standard_t(2, shape.inputs) if heavy_tails else generator.standard_normal(shape.inputs)
    sizes = torch.from_numpy(np.exp(0.2 * np.clip(tails, -6, 6)))
    tokens = draw(shape.tokens, shape.width) + sizes[:, None, None] * draw(shape.inputs, shape.tokens, shape.width)
    source = tokens @ root.mT
    query, key = ((source[:, None] @ (draw(shape.heads, shape.width, shape.dim) / 3)).flatten(0, 1) for _ in range(2))
    index = tuple(
        HeadId(MODEL, f"input-{place}", 0, head) for place in range(shape.inputs) for head in range(shape.heads)
    )
    scale = torch.full((len(key),), shape.dim**-0.5, dtype=torch.float64)
    heads = Heads(query, key, torch.zeros_like(key), torch.zeros_like(key), scale, index, source=source)
    keys = KeyKernel(heads, Protocol.EXACT)
    return with_values(keys, values(Given(heads, shape, draw)).flatten(0, 1))


def _gaussian(given: Given) -> Values:
    """Values that have nothing to do with anything."""
    shape = given.shape
    return given.draw(shape.inputs, shape.heads, shape.tokens, shape.dim)


def _random_projection(given: Given, shared: float = 0.0) -> Values:
    """[X 1]W, one W per head for all inputs; `shared` is the correlation of the W of two heads."""
    shape = given.shape
    common, own = (given.draw(count, shape.width + 1, shape.dim) for count in (1, shape.heads))
    weights = shared**0.5 * common + (1 - shared) ** 0.5 * own
    return given.source @ weights[:, :-1] + weights[:, -1:]


def _rotated(given: Given) -> Values:
    """A random projection, turned in token space, for every input and head anew."""
    shape = given.shape
    turns = torch.linalg.qr(given.draw(shape.inputs, shape.heads, shape.tokens, shape.tokens)).Q
    return turns @ _random_projection(given)


def _planted(given: Given, theory: str = "kpca", noise: float = 0.0) -> Values:
    """(1-ε)V̇ + ε·noise, noise scaled by column; columns in an order and with signs of their own."""
    exact = given.predicted(theory)
    order = given.draw(*exact.shape[:2], 1, exact.shape[-1]).argsort(dim=-1)
    exact = exact.gather(-1, order.expand_as(exact)) * given.draw(*order.shape).sign()
    disturbance = given.draw(*exact.shape)
    lengths = torch.linalg.vector_norm(exact, dim=-2, keepdim=True)
    return (1 - noise) * exact + noise * disturbance * lengths / torch.linalg.vector_norm(
        disturbance, dim=-2, keepdim=True
    )


def _turned(given: Given, *, orthogonal: bool) -> Values:
    """V̇M, one matrix M per head for all inputs: a rotation, or any invertible one."""
    matrices = given.draw(given.shape.heads, given.shape.dim, given.shape.dim)
    return given.predicted("kpca") @ (torch.linalg.qr(matrices).Q if orthogonal else matrices)


def _mixed(given: Given, true: int) -> Values:
    """The theory in the first heads, random projections in the others."""
    return torch.cat([_planted(given)[:, :true], _random_projection(given)[:, true:]], dim=1)


KPCA = ("kpca-values", "kpca-eigenvectors", "kpca-projection")
KSVD, ANY_GAUGE = ("ksvd-values",), ("kpca-values-any-gauge",)
#: Claims whose theories are fitted, or predict from other tokens.
RIVAL_CLAIMS = ("keys-linear", "kernel-regression", "hopfield", "mean-shift", "low-pass")


@dataclass(frozen=True)
class Case:
    """Values of a layer, the claims that are judged on it, and in how many heads they are true.

    `true` is None where that is a question of words. `known` says whether the inputs of the layer are. `planted` is a
    theory that is then made true of all heads.
    """

    values: Callable[[Given], Values]
    true: int | None
    claims: tuple[str, ...] = KPCA
    heavy_tails: bool = False
    known: bool = True
    planted: str | None = None

    def layer(self, inputs: int, seed: int) -> Heads:
        """One draw."""
        heads = layer(self.values, Shape(inputs), seed, heavy_tails=self.heavy_tails)
        if self.planted is not None:
            heads = _made_true(heads, self.planted, seed)
        return heads if self.known else replace(heads, source=None)


def _made_true(heads: Heads, name: str, seed: int) -> Heads:
    """Heads for which a theory is exactly true, with weights that no audit draws: other values, or other outputs."""
    theory = THEORIES[name]
    assert isinstance(theory, FittedTheory)
    planted = theory.planted(heads, seed + 1_000_000)
    if planted is not None:
        return planted
    fitting = theory.fitting()
    fitting.add(heads)
    return replace(heads, output=fitting.finish().predict(heads).outputs)


NULLS = {
    "Gaussian": Case(_gaussian, 0, KPCA + KSVD),
    "random projection": Case(_random_projection, 0, KPCA + KSVD),
    "rotated": Case(_rotated, 0, KPCA + KSVD),
    "shared by all heads": Case(partial(_random_projection, shared=1.0), 0, KPCA + KSVD),
    "correlated between heads": Case(partial(_random_projection, shared=0.5), 0, KPCA + KSVD),
    "heavy tails over inputs": Case(_random_projection, 0, KPCA + KSVD, heavy_tails=True),
}
#: Nulls that are as good as the null of an audit, so that their true score is 0.
PROJECTIONS = tuple(name for name in NULLS if name not in ("Gaussian", "rotated"))
UNKNOWN = {"random projection, inputs not known": Case(_random_projection, 0, known=False)}
PLANTED = {
    **{f"kernel PCA, {noise:.0%} noise": Case(partial(_planted, noise=noise), HEADS) for noise in (0, 0.01, 0.05)},
    **{
        f"kernel SVD, {noise:.0%} noise": Case(partial(_planted, theory="ksvd", noise=noise), HEADS, KSVD)
        for noise in (0, 0.01, 0.05)
    },
}
MIXED = {f"{true} of 10 heads": Case(partial(_mixed, true=true), true) for true in (1, 3, 5, 9)}
_ROTATION, _INVERTIBLE = (partial(_turned, orthogonal=orthogonal) for orthogonal in (True, False))
TURNED = {
    "prediction times a rotation": Case(_ROTATION, None),
    "prediction times an invertible matrix": Case(_INVERTIBLE, None),
}
#: These take a fit of gauges, and so ten times as long.
GAUGES = {
    "random projection, any gauge": Case(_random_projection, 0, ANY_GAUGE),
    "prediction times a rotation, any gauge": Case(_ROTATION, HEADS, ANY_GAUGE),
    "prediction times an invertible matrix, any gauge": Case(_INVERTIBLE, HEADS, ANY_GAUGE),
}
RIVALS = {
    "random projection, rivals": Case(_random_projection, 0, RIVAL_CLAIMS),
    "rotated, inputs-lowrank": Case(_rotated, 0, ("inputs-lowrank",)),
    **{
        f"{name} planted": Case(_random_projection, HEADS, (name,), planted=name)
        for name in (*RIVAL_CLAIMS, "inputs-lowrank")
    },
}
CASES = {**NULLS, **UNKNOWN, **PLANTED, **MIXED, **TURNED, **GAUGES, **RIVALS}
