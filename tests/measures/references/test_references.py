import pytest
import torch

from attnaudit.errors import UsageError
from attnaudit.measures import select
from attnaudit.measures.references import other_head, planted
from tests.heads import make_heads, random_heads
from tests.measures.references.case import ReferenceTestCase, labelled, reference_input


class TestGaussian(ReferenceTestCase):
    name = "gaussian"

    def test_values_are_standard_normal(self):
        values = self.apply(labelled(random_heads(0, heads=40, tokens=50))).value
        assert abs(values.mean().item()) < 0.05
        assert values.std().item() == pytest.approx(1, abs=0.05)


class TestShuffledTokens(ReferenceTestCase):
    name = "shuffled_tokens"

    def test_every_value_is_kept(self):
        heads = labelled(random_heads(0, heads=4))
        shuffled = self.apply(heads).value
        for before, after in zip(heads.value, shuffled, strict=True):
            assert sorted(before[:, 0].tolist()) == sorted(after[:, 0].tolist())
            assert sorted(map(tuple, before.tolist())) == sorted(map(tuple, after.tolist()))


class TestOtherHead(ReferenceTestCase):
    name = "other_head"
    deterministic = True

    def test_values_come_from_the_next_head_of_the_same_input(self):
        heads = labelled(random_heads(0, heads=6))
        assert torch.equal(self.apply(heads).value, heads.value[[1, 2, 0, 4, 5, 3]])

    def test_single_heads_take_another_layer_or_do_without(self):
        heads, other = (labelled(random_heads(seed, heads=2), layer=seed) for seed in (0, 1))
        assert torch.equal(other_head.values(reference_input(heads, other=other)), other.value)
        assert other_head.values(reference_input(heads)) is None
        assert self.apply(heads) is None


class TestPlanted(ReferenceTestCase):
    name = "planted"

    def test_columns_are_the_predicted_ones_in_another_order_with_other_signs(self):
        heads = labelled(random_heads(0, heads=4))
        given = reference_input(heads)
        exact = given.prediction.values * given.prediction.log_scale.exp()[:, None, None]
        for before, after in zip(exact, planted.values(given), strict=True):
            products = torch.nn.functional.normalize(before, dim=0).mT @ torch.nn.functional.normalize(after, dim=0)
            assert products.abs().amax(dim=0).tolist() == pytest.approx([1.0] * 4)

    def test_noise_has_the_size_of_its_column(self):
        given = reference_input(labelled(random_heads(0, heads=2, tokens=60)))
        clean, noise = planted.values(given), planted.values(given, noise=1.0)
        torch.testing.assert_close(noise.norm(dim=1), clean.norm(dim=1))


def test_biased_heads_keep_their_bias_in_the_outputs():
    heads = labelled(random_heads(0, heads=2))
    bias = torch.full((2, heads.tokens, heads.tokens), -torch.inf, dtype=torch.float64).triu(1)
    masked = make_heads(heads.query, heads.key, heads.value, bias=bias)
    changed = TestGaussian().apply(masked)
    torch.testing.assert_close(changed.output[:, 0], changed.value[:, 0])  # the first token sees itself only


def test_unknown_references_are_refused():
    with pytest.raises(UsageError, match="reference 'placebo'"):
        select(references=["placebo"])
