"""The least that the numbers of an audit cost: the kernels of linear algebra that they need, alone and once each.

`audit.needs` counts from the evidence what was needed. Here each kernel is timed by itself, on heads of the same model
and inputs, with its operands ready in memory.

In the floor: every input read once, with one forward pass (and one for each input of the untrained twin); Gram
matrices, eigenpairs and singular vectors once per head; the products, triangular factors, singular values, assignments
and sorts of every stored number; random draws and outputs of references; sums and eigenpairs of the best projections;
one Parquet file. Not in the floor, because a better program might do without it: capture and its certificate, a second
pass over the inputs, norms, scalings, copies, checks, Python itself, and everything around the engine, such as imports
and the page. Iterations of a refined projection count as they are. Measures of causal heads are missing, so that the
floor of a decoder is too low.

Eigenpairs, Gram matrices and assignments of tokens are those of this package, with the solvers it chooses for the
device; of the others, the fastest way we know to as many digits. So this is a floor for how the work is organised. A
better eigensolver would lower it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from attnaudit.audit.needs import Needs
from attnaudit.capture.heads import Heads
from attnaudit.kernel.best_projection import ProjectionSums, leading_projections, overlaps, with_constant
from attnaudit.kernel.eigen import leading_eigenvalues, spectrum
from attnaudit.kernel.gram import centred, normalised_gram, standardised
from attnaudit.kernel.solvers import MIDDLE, eigenpairs
from attnaudit.measures.assignment import matched
from attnaudit.measures.cka import radial_gram
from attnaudit.measures.cosine import unit_rows
from attnaudit.measures.epsilons import epsilons_of
from attnaudit.measures.pairs import too_many_pairs
from attnaudit.numerics.products import product, squares
from attnaudit.protocol import Protocol

Work = Callable[[], Any]
#: The name of a kernel, the work, and for how many heads it is.
Kernel = tuple[str, Work, int]


class Stopwatch:
    """Seconds of the fastest of several calls, after one that warms up; `wait` lets a device finish."""

    def __init__(self, now: Callable[[], float], wait: Callable[[], object] = lambda: None, repeats: int = 3) -> None:
        self._now, self._wait, self._repeats = now, wait, repeats

    def __call__(self, work: Work) -> float:
        """Of one piece of work."""
        work()
        best = float("inf")
        for _ in range(self._repeats):
            self._wait()
            begin = self._now()
            work()
            self._wait()
            best = min(best, self._now() - begin)
        return best


def reference_seconds(device: str, stopwatch: Stopwatch) -> float:
    """Of one matrix of a computation that never changes: a product and eigenpairs of 197 x 197, in float64.

    How many of them an audit takes says more about the program than seconds do, which depend on the machine and on
    what else it does.
    """
    count = 12 if device == "cpu" else 600
    drawn = torch.randn(count, 197, 197, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(device)
    return stopwatch(lambda: eigenpairs(drawn @ drawn.mT)) / count


def floor_by_stage(needs: Needs, batches: Iterable[Heads], stopwatch: Stopwatch) -> dict[str, float]:
    """Seconds of what the evidence needs, by the stage that does it, from the time of kernels on some of its heads."""
    seconds: defaultdict[str, float] = defaultdict(float)
    heads: defaultdict[str, int] = defaultdict(int)
    for batch in batches:
        for name, work, count in kernels(batch):
            seconds[name] += stopwatch(work)
            heads[name] += count
    stages: defaultdict[str, float] = defaultdict(float)
    for (stage, name), count in needs.counts.items():
        if count and name in heads:
            stages[stage] += count * seconds[name] / heads[name]
    return dict(stages)


def kernels(heads: Heads) -> Iterator[Kernel]:
    """Every kernel, ready to run on a batch of heads; those over all pairs of tokens not where there are too many."""
    key, value, scale, count = heads.key, heads.value.double(), heads.scale, len(heads)
    width = min(value.shape[-1], heads.tokens)
    found = spectrum(key, width, scale=scale)
    vectors = found.eigenvectors.double()
    small = product(vectors.mT, value)
    order = torch.randperm(width, device=vectors.device)
    if heads.tokens <= MIDDLE:
        matrix = centred(normalised_gram(key, scale).matrix)
        yield "gram", lambda: centred(normalised_gram(key, scale).matrix), count
        yield "eigenpairs", lambda: eigenpairs(matrix), count
    else:
        yield "eigenpairs", lambda: spectrum(key, width, scale=scale), count
    yield "standardised eigenvalues", lambda: leading_eigenvalues(standardised(key.double()), width), count
    yield "draw", lambda: _noise(value), count
    yield "product", lambda: product(vectors.mT, value), count
    yield "factor", lambda: torch.linalg.cholesky(squares(value)), count
    yield "singular values", lambda: _squared_sizes(small), count
    yield "image", lambda: found.times(value), count
    columns = value.mT.contiguous()
    yield "sort", lambda: _sorted(columns), count
    yield "assignment of columns", _assignment(small.abs()), count
    yield "assignment of planted columns", _assignment((vectors.mT @ vectors[:, :, order]).abs()), count
    if heads.source is not None:
        yield from _projections(heads, value, vectors)
    if not too_many_pairs(key):
        yield from _of_pairs(heads, value, vectors[:, :, order])


def _projections(heads: Heads, value: Tensor, vectors: Tensor) -> Iterator[Kernel]:
    assert heads.source is not None
    inputs, count = with_constant(heads.source), len(heads)
    per_row = count // len(inputs)
    bases = vectors.view(len(inputs), per_row, *vectors.shape[1:])
    weights = torch.randn(per_row, inputs.shape[-1], value.shape[-1], dtype=value.dtype, device=value.device)
    yield "projection", lambda: product(inputs[:, None], weights), count
    yield "sums", lambda: ProjectionSums.of(inputs, bases), count
    yield "overlap", lambda: overlaps(weights, inputs, bases), count
    sums = ProjectionSums.of(inputs, bases)
    yield "leading projection", lambda: leading_projections([sums], bases.shape[-1]), per_row


def _of_pairs(heads: Heads, value: Tensor, planted: Tensor) -> Iterator[Kernel]:
    attention, count = heads.attention(), len(heads)
    products = value @ value.mT
    epsilons = epsilons_of(Protocol.EXACT)
    rows = unit_rows(planted, epsilons)
    tokens, planted_tokens = unit_rows(value, epsilons) @ rows.mT, rows @ rows.mT
    yield "singular vectors", lambda: eigenpairs(squares(replace(heads).attention())), count  # heads keep theirs
    yield "outputs", lambda: product(attention, value), count
    yield "products of tokens", lambda: product(value, value.mT), count
    yield "radial kernel", lambda: radial_gram(products), count
    yield "assignment of tokens", lambda: matched(tokens), count
    yield "assignment of planted tokens", lambda: matched(planted_tokens), count


def _squared_sizes(matrix: Tensor) -> Tensor:
    """Squares of the singular values: their sums need no more digits than this leaves."""
    if matrix.is_cuda:
        return eigenpairs(squares(matrix))[0]
    sizes: Tensor = torch.linalg.eigvalsh(squares(matrix))
    return sizes


def _noise(like: Tensor) -> Any:
    if like.is_cuda:
        return torch.randn_like(like)
    return np.random.default_rng(0).standard_normal(like.shape)


def _sorted(columns: Tensor) -> Any:
    return columns.sort(dim=-1) if columns.is_cuda else np.sort(columns.numpy(), axis=-1)


def _assignment(scores: Tensor) -> Work:
    if scores.is_cuda:
        return lambda: matched(scores)
    matrices = list(scores.numpy())
    return lambda: [linear_sum_assignment(matrix, maximize=True) for matrix in matrices]
