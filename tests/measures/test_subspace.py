import pytest
import torch
from scipy.linalg import subspace_angles

from attnaudit.measures.subspace import PRINCIPAL_ANGLE_MEDIAN, VALUE_SUBSPACE_OVERLAP
from tests.heads import random_heads
from tests.measures.case import MeasureTestCase, changed_prediction, changed_values, input_of, predict


class TestSpan(MeasureTestCase):
    measures = (VALUE_SUBSPACE_OVERLAP,)

    def test_ignores_the_size_of_each_column(self):
        heads, prediction = random_heads(0), predict(random_heads(0))
        scaled = changed_values(heads, heads.value * torch.tensor([1e-3, 1.0, 5.0, 1e4], dtype=torch.float64))
        self.check(True, self.values(heads, prediction), self.values(scaled, prediction))


def test_angles_equal_scipys():
    heads = random_heads(0, heads=1)
    prediction = predict(heads)
    angles = subspace_angles(heads.value[0].numpy(), prediction.values[0].numpy())
    at = input_of(heads, prediction)
    assert PRINCIPAL_ANGLE_MEDIAN.function(at).item() == pytest.approx(sorted(angles)[1] * 180 / torch.pi, rel=1e-8)
    assert VALUE_SUBSPACE_OVERLAP.function(at).item() == pytest.approx(
        (torch.from_numpy(angles).cos() ** 2).mean().item()
    )


def test_independent_spans_overlap_by_their_share_of_dimensions():
    heads = random_heads(0, heads=200, tokens=40, dim=8)
    overlap = VALUE_SUBSPACE_OVERLAP.function(input_of(heads, changed_prediction(predict(heads), heads.key)))
    assert overlap.mean().item() == pytest.approx(8 / 40, abs=0.01)
