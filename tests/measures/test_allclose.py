from dataclasses import replace

import torch

from attnaudit.measures.allclose import ALLCLOSE
from tests.heads import random_heads
from tests.measures.case import input_of, predict


def allclose(heads, prediction):
    return ALLCLOSE.function(input_of(heads, prediction)).tolist()


def test_only_the_very_same_numbers_pass():
    heads = random_heads(0)
    prediction = predict(heads)
    exact = prediction.values * prediction.log_scale.exp()[:, None, None]
    assert allclose(replace(heads, value=exact), prediction) == [1.0, 1.0]
    assert allclose(replace(heads, value=exact * 1.0005), prediction) == [1.0, 1.0]
    assert allclose(replace(heads, value=exact * 1.1 + 1e-3), prediction) == [0.0, 0.0]


def test_one_flipped_column_fails_although_the_theory_leaves_signs_free():
    heads = random_heads(0)
    prediction = predict(heads)
    flipped = prediction.values * prediction.log_scale.exp()[:, None, None]
    flipped = flipped * torch.tensor([1.0, 1.0, 1.0, -1.0], dtype=torch.float64)
    assert allclose(replace(heads, value=flipped), prediction) == [0.0, 0.0]
