"""Keys and values of several inputs, and how close the values are to kernel PCA in a gauge that all inputs share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.any_gauge import Gauge, gauge_overlaps
from attnaudit.kernel.gram import PerHead

#: L and w of every head in a row.
Parameters = Float[Tensor, "heads parameters"]
#: Entries of kernel matrices at a time.
_BLOCK = {"cpu": 1 << 22, "cuda": 1 << 27}


def same_length(keys: Sequence[Float[Tensor, "heads _ dim"]]) -> list[list[int]]:
    """Places of inputs with the same number of tokens, together as far as their kernels fit into memory."""
    groups: list[list[int]] = []
    for place in sorted(range(len(keys)), key=lambda place: keys[place].shape[1]):
        heads, tokens, _ = keys[place].shape
        last = groups[-1] if groups else []
        fits = (len(last) + 1) * heads * tokens**2 <= _BLOCK.get(keys[place].device.type, _BLOCK["cpu"])
        if last and keys[last[0]].shape[1] == tokens and fits:
            last.append(place)
        else:
            groups.append([place])
    return groups


@dataclass(frozen=True)
class GaugeSample:
    """Keys and orthonormal bases of values of some inputs, together if they have the same number of tokens."""

    keys: tuple[Float[Tensor, "heads _ _ dim"], ...]
    values: tuple[Float[Tensor, "heads _ _ columns"], ...]

    @staticmethod
    def of(
        keys: Sequence[Float[Tensor, "heads _ dim"]], values: Sequence[Float[Tensor, "heads _ columns"]]
    ) -> GaugeSample:
        """From the keys and bases of each input."""
        groups = same_length(keys)
        return GaugeSample(
            tuple(torch.stack([keys[place].double() for place in group], dim=1) for group in groups),
            tuple(torch.stack([values[place] for place in group], dim=1) for group in groups),
        )

    def overlap(self, gauge: Gauge) -> PerHead:
        """The mean over all inputs."""
        parts = zip(self.keys, self.values, strict=True)
        return torch.cat([gauge_overlaps(gauge, keys, values) for keys, values in parts], dim=1).mean(dim=1)

    def climb(self, gauge: Gauge) -> tuple[PerHead, Parameters]:
        """The mean over all inputs, and its gradient for L and w."""
        count = sum(keys.shape[1] for keys in self.keys)
        value, slope = torch.zeros_like(gauge.tilt[:, 0]), torch.zeros_like(flat(gauge))
        for keys, values in zip(self.keys, self.values, strict=True):
            factor, tilt = (x.detach().requires_grad_(True) for x in (gauge.factor, gauge.tilt))
            with torch.enable_grad():
                found = gauge_overlaps(Gauge(gauge.origin, factor, tilt), keys, values).sum(dim=1) / count
                own = torch.autograd.grad(found.sum(), (factor, tilt))
            value, slope = value + found.detach(), slope + flat(Gauge(gauge.origin, *own))
        return value, slope

    def transformed(self, gauge: Gauge) -> GaugeSample:
        """The gauged keys (k - k₀)L instead of the keys."""
        moved = tuple((keys - gauge.origin[:, None, None]) @ gauge.factor[:, None] for keys in self.keys)
        return GaugeSample(moved, self.values)


def flat(gauge: Gauge) -> Parameters:
    """The parameters of a gauge."""
    return torch.cat([gauge.factor.flatten(1), gauge.tilt], dim=1)
