"""What torch says where memory is too small."""

from __future__ import annotations

import torch

#: On a CPU: more than there is, and more than can be numbered.
_WORDS = ("can't allocate memory", "Storage size calculation overflowed")


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether torch could not allocate: a GPU has an error of its own, a CPU only words."""
    return isinstance(error, torch.OutOfMemoryError) or any(words in str(error) for words in _WORDS)
