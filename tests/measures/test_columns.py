import itertools

import pytest
import torch
from hypothesis import given

from attnaudit.measures.columns import COLUMN_COSINE_MATCHED, PROCRUSTES
from tests.heads import random_heads
from tests.measures.case import MeasureTestCase, changed_prediction, input_of, predict, seeds


class TestColumnCosine(MeasureTestCase):
    measures = (COLUMN_COSINE_MATCHED,)
    ignores_value_rotation = False

    def test_ignores_the_order_of_predicted_columns(self):
        heads, prediction = random_heads(0), predict(random_heads(0))
        moved = changed_prediction(prediction, prediction.values[:, :, [2, 0, 3, 1]])
        self.check(True, self.values(heads, prediction), self.values(heads, moved))


class TestProcrustes(MeasureTestCase):
    measures = (PROCRUSTES,)


@given(seeds)
def test_column_cosine_equals_the_best_of_all_orders(seed):
    heads, prediction = random_heads(seed, heads=1), predict(random_heads(seed, heads=1))
    value, predicted = (torch.nn.functional.normalize(m[0], dim=0) for m in (heads.value, prediction.values))
    cosines = (predicted.mT @ value).abs()
    best = max(cosines[range(4), list(order)].mean().item() for order in itertools.permutations(range(4)))
    assert COLUMN_COSINE_MATCHED.function(input_of(heads, prediction)).item() == pytest.approx(best, rel=1e-12)


@given(seeds)
def test_no_rotation_does_better_than_procrustes(seed):
    heads, prediction = random_heads(seed, heads=1), predict(random_heads(seed, heads=1))
    ours = PROCRUSTES.function(input_of(heads, prediction)).item()
    value, predicted = heads.value[0], prediction.values[0]
    left, _, right = torch.linalg.svd(predicted.mT @ value)
    best = (predicted @ (left @ right) * value).sum() / (predicted.norm() * value.norm())
    assert ours == pytest.approx(best.item(), rel=1e-10)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(5):
        rotation = torch.linalg.qr(torch.randn(4, 4, generator=generator, dtype=torch.float64)).Q
        assert (predicted @ rotation * value).sum() / (predicted.norm() * value.norm()) <= ours + 1e-12
