"""The best assignment of many square matrices at once on a GPU, exactly: one program per matrix.

The algorithm is that of Jonker & Volgenant (1987) in the form of Crouse (2016), as in SciPy: rows are added one by
one; for each a shortest path to a free column is grown in reduced costs c_ij - u_i - v_j ≥ 0, the prices v are updated
and the path is flipped. The prices u need not be kept: a row that has a column is tight, u_i = c_ij - v_j, and for the
row being added any u will do, because it is a constant of all path lengths.

The first prices come from the entropy-regularised problem (Sinkhorn), as on the CPU. They decide only how long it
takes: the result is tight for feasible prices, hence optimal. The tests compare with SciPy.
"""

from __future__ import annotations

import importlib.util

import torch
from jaxtyping import Float, Int
from torch import Tensor

Costs = Float[Tensor, "batch n n"]

SHARPNESS = 150.0  # exp(-150) is far inside the range of float64
ROUNDS = 20
#: Beyond this a program's state no longer fits the registers of a warp.
LARGEST = 1024


def available(scores: Tensor) -> bool:
    """Whether these matrices can be solved here."""
    fits = scores.is_cuda and scores.shape[-1] == scores.shape[-2] <= LARGEST
    return fits and importlib.util.find_spec("triton") is not None


def assigned_rows(costs: Costs) -> Int[Tensor, "batch n"]:
    """For each column of each matrix the row of the assignment with the smallest sum; costs must be finite."""
    costs = costs.double().contiguous()
    batch, n, _ = costs.shape
    prices = _column_prices(costs)
    row_of = _greedy(costs, prices)
    from attnaudit.measures.augment import augment  # imports triton, which only GPU builds of torch bring along

    augment[(batch,)](costs, prices, row_of, n, BLOCK=max(32, 1 << (n - 1).bit_length()), num_warps=1)
    return row_of.long()


def _column_prices(costs: Costs) -> Float[Tensor, "batch n"]:
    least = costs.amin(dim=(1, 2), keepdim=True)
    softness = (costs.amax(dim=(1, 2), keepdim=True) - least).clamp_min(1e-300) / SHARPNESS
    kernel = torch.exp((least - costs) / softness)
    columns = torch.ones_like(costs[:, :1])
    for _ in range(ROUNDS):
        rows = 1 / (kernel @ columns.mT)
        columns = 1 / (rows.mT @ kernel)
    return -(softness * columns.log())[:, 0].contiguous()


def _greedy(costs: Costs, prices: Tensor) -> Int[Tensor, "batch n"]:
    """Each row's cheapest column, where no other row has taken it; -1 for columns without a row."""
    batch, n, _ = costs.shape
    wish = (costs - prices[:, None, :]).argmin(dim=-1)
    rows = torch.arange(n, device=costs.device, dtype=torch.int32).expand(batch, n)
    row_of = torch.full((batch, n), -1, dtype=torch.int32, device=costs.device)
    return row_of.scatter_(1, wish, rows)
