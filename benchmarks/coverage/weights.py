"""Compare the attention weights of captured heads with those that the model computed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from attnaudit.capture import Heads

#: Weights that differ by less are the same.
SAME = 1e-5
#: How many rows on either side of the nearest projection are looked at.
_NEAR = 3


def weights_difference(layer: Sequence[Heads], weights: Tensor) -> float:
    """The largest difference between the weights of a captured layer and the model's, over what was captured.

    Capture drops padding and sorts units by input, window and head. Unless all agree in the order they have, every
    unit is compared with the nearest unit of the model, or every row with the nearest row, both sorted by size.
    """
    theirs = weights.detach().double().nan_to_num()
    mine = [_weights(heads) for heads in layer]
    if len(mine) == 1 and mine[0].numel() == theirs.numel():
        difference = float((mine[0] - theirs.reshape(mine[0].shape)).abs().max())
        if difference > SAME:
            difference = _nearest_difference(mine[0].flatten(1), theirs.reshape(len(mine[0]), -1))
        if difference < SAME:
            return difference
    rows = theirs.reshape(-1, theirs.shape[-1])
    return max(_rows_difference(part.flatten(0, 1), rows) for part in mine)


def ordered_difference(heads: Heads, weights: Tensor) -> float | None:
    """The same, with all entries in the order of the captured ones; None if the numbers of weights differ."""
    mine = _weights(heads)
    if mine.numel() != weights.numel():
        return None
    return float((mine - weights.detach().double().nan_to_num().reshape(mine.shape)).abs().max())


def _rows_difference(mine: Tensor, theirs: Tensor) -> float:
    """The same for rows of different lengths, where the order of keys does not count."""
    width = max(mine.shape[1], theirs.shape[1])
    mine, theirs = (pad(rows, (0, width - rows.shape[1])).sort(dim=1).values for rows in (mine, theirs))
    return _nearest_difference(mine, theirs)


def _nearest_difference(mine: Tensor, theirs: Tensor) -> float:
    """The largest difference between a row and the nearest of theirs, looked for near its projection on a line."""
    line = torch.rand(mine.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    line = line.to(mine.device)
    projections, order = (theirs @ line).sort()
    theirs = theirs[order]
    place = torch.searchsorted(projections, mine @ line)
    least = mine.new_full((len(mine),), torch.inf)
    for shift in range(-_NEAR, _NEAR + 1):
        candidates = theirs[(place + shift).clamp(0, len(theirs) - 1)]
        least = torch.minimum(least, (mine - candidates).abs().amax(dim=1))
    return float(least.max())


def _weights(heads: Heads) -> Tensor:
    """The softmax of a head, with the weight of its sink at the end; 0 for a query that sees no key."""
    logits = heads.query.double() @ heads.key.double().mT * heads.scale.double()[:, None, None]
    if heads.softcap is not None:
        logits = heads.softcap * torch.tanh(logits / heads.softcap)
    if heads.bias is not None:
        logits = logits + heads.bias.double()
    if heads.sink is not None:
        logits = torch.cat([logits, heads.sink.double()[..., None]], dim=-1)
    return torch.softmax(logits, dim=-1).nan_to_num()
