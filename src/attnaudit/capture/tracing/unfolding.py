"""Labels of pictures that are unfolded into patches."""

from __future__ import annotations

from torch import Tensor

from attnaudit.capture.tracing.labels import Move, varies


def unfolded(label: Tensor, unfold: Move) -> Tensor:
    """No integers are unfolded by torch. Outside of a picture all is as inside, or unknown if places differ."""
    if any(varies(label, axis) for axis in range(label.dim() - 2, label.dim())):
        return unfold(label.double() + 1).long() - 1
    size = unfold(label[:1, :1].double()).shape  # (1, pixels of a patch, patches)
    small = label[..., 0, 0].repeat_interleave(size[-2], dim=-1).unsqueeze(-1)
    return small.expand(*small.shape[:-1], size[-1])
