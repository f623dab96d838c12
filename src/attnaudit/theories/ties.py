"""Components of equal size: any mixture of them is as good, so what a theory predicts of them is up to rounding."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

#: Components whose sizes differ by less, as a share, are mixed when what they are made from is rounded to float32.
_TIE = 1e-5
#: The share of predicted columns that may be tied.
_TIED = 0.1


def problems_of_ties(sizes: Float[Tensor, "heads columns"], what: str) -> list[str | None]:
    """For each head why its components are arbitrary, or None; `sizes` are sorted, `what` is their name.

    A tie of the last component with the next one, which is not among `sizes`, is not seen: it is one column of all.
    """
    close = sizes.diff(dim=-1).abs() <= _TIE * sizes[:, :-1]
    none = torch.zeros_like(close[:, :1])
    tied = torch.cat([close, none], dim=-1) | torch.cat([none, close], dim=-1)
    columns = sizes.shape[1]
    return [
        f"{count} of its {columns} leading {what} are equal up to rounding, and their vectors arbitrary"
        if count > _TIED * columns
        else None
        for count in tied.sum(dim=-1).tolist()
    ]
