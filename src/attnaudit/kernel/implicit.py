"""Products with K̃ of long inputs, without ever building the matrix.

K_φ,ij = exp(scale·k_i·k_j - l_i - l_j), l = log g, is one matrix product of the keys with two extra columns,
[scale·k, -l, 1]·[k, 1, -l]ᵀ, and an exponential. Its largest entry is on the diagonal, because scale·k_i·k_j is at
most the mean of scale·‖k_i‖² and scale·‖k_j‖². Rows are computed in blocks and discarded.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.gram import Keys, PerHead, PerToken, temperature
from attnaudit.numerics.blocks import row_slices

#: Entries per block of rows: 32 MiB on a CPU, 512 MiB on a GPU, for any number of tokens.
BLOCK = {"cpu": 1 << 22, "cuda": 1 << 26}

Columns = Float[Tensor, "heads tokens columns"]


@dataclass(frozen=True)
class ImplicitKernel:
    """(I - 1_N) K_φ (I - 1_N) / exp(log_scale) of each head, stored as factors; `kernel @ vectors` multiplies."""

    left: Float[Tensor, "heads tokens dim"]
    right: Float[Tensor, "heads tokens dim"]

    def __matmul__(self, vectors: Columns) -> Columns:
        """The product in float64, with O(tokens · columns) memory besides one block of rows."""
        vectors = vectors.double()
        vectors = vectors - vectors.mean(dim=1, keepdim=True)
        result = torch.empty_like(vectors)
        for head, (left, right) in enumerate(zip(self.left, self.right, strict=True)):
            for rows in row_slices(len(left), len(left), BLOCK, left.device):
                block = (left[rows] @ right.mT).exp_()
                torch.mm(block, vectors[head], out=result[head, rows])
        return result - result.mean(dim=1, keepdim=True)

    def among(self, places: list[int]) -> ImplicitKernel:
        """Those of the heads at these places."""
        return ImplicitKernel(self.left[places], self.right[places])


def implicit_gram(keys: Keys, scale: PerHead | None = None) -> tuple[ImplicitKernel, PerHead, PerToken]:
    """The kernel, log_scale and log g, as `normalised_gram` gives them for a matrix that fits into memory."""
    keys = keys.double()
    scaled = keys * temperature(keys, scale)
    log_mass = torch.stack([_log_sums(left, right) for left, right in zip(scaled, keys, strict=True)])
    log_scale = ((scaled * keys).sum(dim=-1) - 2 * log_mass).amax(dim=-1)
    ones = torch.ones_like(log_mass)
    shifted = -log_mass - log_scale[:, None] / 2
    left = torch.cat([scaled, shifted[..., None], ones[..., None]], dim=-1)
    right = torch.cat([keys, ones[..., None], shifted[..., None]], dim=-1)
    return ImplicitKernel(left, right), log_scale, log_mass


def _log_sums(left: Float[Tensor, "tokens dim"], right: Float[Tensor, "tokens dim"]) -> Float[Tensor, "tokens"]:
    blocks = row_slices(len(left), len(left), BLOCK, left.device)
    return torch.cat([torch.logsumexp(left[rows] @ right.mT, dim=-1) for rows in blocks])
