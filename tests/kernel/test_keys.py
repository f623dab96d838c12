"""What is no batch of heads is refused: it would have a Gram matrix of something else."""

import pytest
import torch

from attnaudit.errors import ShapeError
from attnaudit.kernel.gram import check_keys

KEYS = torch.zeros(2, 5, 3)


@pytest.mark.parametrize(
    ("keys", "scale", "words"),
    [
        (KEYS[0], None, r"keys must be a real tensor \(heads, tokens, dim\), got torch.float32 of shape \(5, 3\)"),
        (KEYS[None], None, r"of shape \(1, 2, 5, 3\)"),
        (KEYS[:, :0], None, r"of shape \(2, 0, 3\)"),
        (KEYS.to(torch.complex64), None, "got torch.complex64"),
        (KEYS.numpy(), None, "got ndarray"),
        (KEYS, 2.0, "scale must be a tensor with a number for each of 2 heads, got float"),
        (KEYS, torch.ones(3), r"got torch.float32 of shape \(3,\)"),
    ],
)
def test_keys_and_scales_of_another_form_are_refused(keys, scale, words):
    with pytest.raises(ShapeError, match=words):
        check_keys(keys, scale)


def test_keys_of_any_precision_and_no_heads_at_all_are_taken():
    for keys in (KEYS, KEYS.half(), KEYS.double(), KEYS[:0]):
        check_keys(keys, keys.new_ones(len(keys)))
