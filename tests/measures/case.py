"""What every measure of values against a prediction must and must not care about."""

from dataclasses import dataclass, replace

import torch
from hypothesis import given
from hypothesis import strategies as st

from attnaudit.kernel import Prediction, kernel_pca_values, spectrum
from attnaudit.measures import MeasureInput
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure_input import PredictedValues
from attnaudit.protocol import Protocol
from tests.heads import make_heads, random_heads

seeds = st.integers(0, 10_000)


@dataclass(frozen=True)
class Given:
    """A theory with a prediction that was made before."""

    prediction: Prediction
    name: str = "given"
    text: str = "a prediction that was made before"

    def predict(self, heads, spectrum, protocol):
        return self.prediction


def input_of(heads, prediction=None, protocol=Protocol.EXACT):
    """What a measure takes: these heads beside this prediction, or beside kernel PCA."""
    if prediction is None:
        return MeasureInput.of(heads, protocol)
    keys = KeyKernel(heads, protocol)
    return MeasureInput(heads, keys, PredictedValues(keys, Given(prediction)))


def predict(heads):
    return kernel_pca_values(spectrum(heads.key))


def changed_values(heads, value):
    return make_heads(heads.query, heads.key, value)


def changed_prediction(prediction, values):
    return Prediction(values, prediction.log_scale, prediction.problems)


def random_orthogonal(seed, dim):
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(dim, dim, generator=generator, dtype=torch.float64)).Q


class MeasureTestCase:
    """Subclass, set `measures` to measures of values against a prediction, and the flags to what is true of them.

    A flag that is False is tested too: for some head the measures must change, so that no test passes by accident.
    """

    measures = ()
    ignores_prediction_signs = True
    ignores_value_rotation = True
    ignores_shuffled_values = False

    def values(self, heads, prediction):
        at = input_of(heads, prediction)
        return torch.stack([measure.function(at).double() for measure in self.measures])

    def check(self, same, before, after):
        if same:
            torch.testing.assert_close(after, before, rtol=1e-7, atol=1e-8)
        else:
            assert not torch.allclose(after, before, rtol=1e-3, atol=1e-3)

    @given(seeds)
    def test_ignores_the_order_of_tokens(self, seed):
        heads = random_heads(seed)
        order = torch.randperm(heads.tokens, generator=torch.Generator().manual_seed(seed))
        prediction = predict(heads)
        moved = make_heads(heads.query[:, order], heads.key[:, order], heads.value[:, order])
        after = self.values(moved, changed_prediction(prediction, prediction.values[:, order]))
        self.check(True, self.values(heads, prediction), after)

    @given(seeds, st.floats(0.1, 10))
    def test_ignores_the_scale_of_the_values(self, seed, factor):
        heads, prediction = random_heads(seed), predict(random_heads(seed))
        before, after = (
            self.values(heads, prediction),
            self.values(changed_values(heads, factor * heads.value), prediction),
        )
        self.check(True, before, after)

    def test_signs_of_the_predicted_columns(self):
        heads, prediction = random_heads(0), predict(random_heads(0))
        flipped = prediction.values * torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64)
        after = self.values(heads, changed_prediction(prediction, flipped))
        self.check(self.ignores_prediction_signs, self.values(heads, prediction), after)

    def test_rotation_of_the_values(self):
        heads, prediction = random_heads(0), predict(random_heads(0))
        after = self.values(changed_values(heads, heads.value @ random_orthogonal(1, 4)), prediction)
        self.check(self.ignores_value_rotation, self.values(heads, prediction), after)

    def test_values_handed_to_other_tokens(self):
        heads, prediction = random_heads(0), predict(random_heads(0))
        order = torch.randperm(heads.tokens, generator=torch.Generator().manual_seed(1))
        after = self.values(changed_values(heads, heads.value[:, order]), prediction)
        self.check(self.ignores_shuffled_values, self.values(heads, prediction), after)

    @given(seeds)
    def test_the_prediction_itself_scores_one(self, seed):
        heads = random_heads(seed)
        prediction = predict(heads)
        values = self.values(replace(heads, value=prediction.values), prediction)
        torch.testing.assert_close(values, torch.ones_like(values), rtol=1e-9, atol=1e-9)

    def test_a_missing_prediction_is_a_missing_number(self):
        heads, prediction = random_heads(0), predict(random_heads(0))
        lost = prediction.values.clone()
        lost[1] = torch.nan
        values = self.values(heads, changed_prediction(prediction, lost))
        assert values[:, 1].isnan().all()
        assert values[:, 0].isfinite().all()
