from dataclasses import replace

import pytest
import torch

from attnaudit.errors import ShapeError, UsageError
from attnaudit.measures import select
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.references import other_head, planted
from attnaudit.measures.references.base import Reference, Role
from tests.heads import make_heads, random_heads
from tests.measures.references.case import ReferenceTestCase, labelled, reference_input


def applied(make):
    heads = labelled(random_heads(0, heads=2, tokens=9))
    mine = Reference("mine", "my own", Role.CONTEXT, make)
    return mine.apply(reference_input(heads), KeyKernel(heads))


@pytest.mark.parametrize("wrong", [(1, 9, 4), (2, 8, 4), (2, 9, 5), (9, 4)])
def test_values_of_a_users_reference_have_the_shape_of_the_heads(wrong):
    with pytest.raises(ShapeError, match=r"The reference 'mine' must return values of shape \(2, 9, 4\), got \("):
        applied(lambda given: torch.zeros(wrong))


def test_values_of_a_users_reference_are_a_tensor():
    with pytest.raises(UsageError, match="The reference 'mine' must return values as a torch tensor, got ndarray"):
        applied(lambda given: given.heads.value.numpy())


class TestGaussian(ReferenceTestCase):
    name = "gaussian"

    def test_values_are_normal_and_of_the_size_of_the_head(self):
        heads = labelled(random_heads(0, heads=40, tokens=50))
        sizes = torch.logspace(-3, 3, 40, dtype=torch.float64)[:, None, None]
        values = self.apply(replace(heads, value=sizes * heads.value)).value / sizes
        assert abs(values.mean().item()) < 0.05
        assert values.std().item() == pytest.approx(heads.value.std().item(), abs=0.05)
        assert values.std(dim=(1, 2)).tolist() == pytest.approx([1.0] * 40, abs=0.3)


class TestRandomProjection(ReferenceTestCase):
    name = "random_projection"

    def test_values_are_one_projection_of_all_inputs(self):
        heads = labelled(random_heads(0, heads=4, tokens=30))
        values = self.apply(heads).value
        wide = torch.cat([heads.source, torch.ones_like(heads.source[..., :1])], dim=-1)
        weights = [torch.linalg.lstsq(wide[place // 2], values[place]).solution for place in range(4)]
        for place in range(4):
            torch.testing.assert_close(wide[place // 2] @ weights[place], values[place])
        for head in range(2):  # up to its size, the projection of a head is the same for both inputs
            torch.testing.assert_close(*(own / own.norm() for own in (weights[head], weights[head + 2])))

    def test_values_have_the_size_of_the_heads(self):
        heads = labelled(random_heads(0, heads=4))
        torch.testing.assert_close(self.apply(heads).value.norm(dim=(1, 2)), heads.value.norm(dim=(1, 2)))

    def test_windows_of_an_input_share_the_projection(self):
        heads = labelled(random_heads(0, heads=2, tokens=30), inputs=2)
        index = tuple(entry._replace(input="one", window=place) for place, entry in enumerate(heads.index))
        source = heads.source[:1].expand(2, -1, -1)
        first, second = self.apply(replace(heads, index=index, source=source)).value
        torch.testing.assert_close(first / first.norm(), second / second.norm())

    def test_without_the_inputs_of_a_layer_it_does_not_apply(self):
        assert self.apply(replace(labelled(random_heads(0, heads=4)), source=None)) is None


class TestRotated(ReferenceTestCase):
    name = "rotated"

    def test_mean_and_products_of_columns_are_kept(self):
        heads = labelled(random_heads(0, heads=4, tokens=20))
        turned = self.apply(heads).value
        torch.testing.assert_close(turned.mean(dim=1), heads.value.mean(dim=1))
        torch.testing.assert_close(turned.mT @ turned, heads.value.mT @ heads.value)

    def test_heads_with_fewer_tokens_than_columns_are_turned_too(self):
        heads = labelled(random_heads(0, heads=2, tokens=3, dim=8))
        turned = self.apply(heads).value
        torch.testing.assert_close(turned.mT @ turned, heads.value.mT @ heads.value)


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
