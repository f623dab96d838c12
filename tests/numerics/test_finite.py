import torch

from attnaudit.numerics.finite import first_not_finite


def test_the_first_input_that_is_not_finite_is_found():
    batch = torch.zeros(4, 3, 2)
    assert first_not_finite(batch) is None
    batch[2, 1, 0], batch[3] = torch.nan, torch.inf
    assert first_not_finite(batch) == 2


def test_a_mask_may_hide_tokens_but_not_be_nan():
    mask = torch.tensor([[0.0, -torch.inf]])
    assert first_not_finite(mask) == 0
    assert first_not_finite(mask, is_mask=True) is None
    assert first_not_finite(mask * 0, is_mask=True) == 0


def test_whole_numbers_and_tensors_without_values_are_left_alone():
    assert first_not_finite(torch.ones(2, dtype=torch.long)) is None
    assert first_not_finite(torch.zeros(2, device="meta")) is None
