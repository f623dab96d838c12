"""Kernel PCA in any gauge, and the gauge that fits best."""

import pytest
import torch

from attnaudit.kernel import spectrum
from attnaudit.kernel.any_gauge import Gauge, gauge_overlaps, gauge_spans
from attnaudit.kernel.gauge_fit import CHECKED, gauge_fit
from attnaudit.kernel.gauge_sample import GaugeSample
from attnaudit.kernel.key_frame import KeyFrame
from attnaudit.kernel.prediction import kernel_pca_values

HEADS, INPUTS, TOKENS, DIM = 2, 5, 24, 4


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def orthonormal(x):
    return torch.linalg.qr(x)[0]


def skewed(*shape, seed=0):
    """Keys with a frame: not Gaussian."""
    return drawn(*shape, seed=seed).exp()


def overlap(one, other):
    return (one.mT @ other).square().sum(dim=(-2, -1)) / one.shape[-1]


@pytest.fixture
def keys():
    return skewed(HEADS, INPUTS, TOKENS, DIM)


@pytest.fixture
def unrelated():
    return orthonormal(drawn(HEADS, INPUTS, TOKENS, DIM, seed=1))


@pytest.fixture
def some_gauge():
    return Gauge(drawn(HEADS, DIM, seed=2), 0.4 * drawn(HEADS, DIM, DIM, seed=3), 0.3 * drawn(HEADS, DIM, seed=4))


def test_a_gauge_predicts_the_kernel_pca_values_of_its_gauged_keys(keys):
    factor, shift = 0.4 * drawn(HEADS, DIM, DIM, seed=3), drawn(HEADS, DIM, seed=4)
    spans = gauge_spans(Gauge.of(factor, shift), keys, DIM)
    for place in range(INPUTS):
        gauged = (keys[:, place] + shift[:, None]) @ factor
        usual = kernel_pca_values(spectrum(gauged, DIM, scale=torch.ones(HEADS, dtype=torch.float64))).values
        torch.testing.assert_close(overlap(spans[:, place], orthonormal(usual)), torch.ones(HEADS).double())


def test_the_origin_only_shifts_the_tilt(keys, unrelated, some_gauge):
    move = drawn(HEADS, DIM, seed=5)
    # x = k - k₀ and w = S(c + k₀) belong to the same c.
    tilt = some_gauge.tilt + (some_gauge.factor @ some_gauge.factor.mT @ move[..., None])[..., 0]
    moved = Gauge(some_gauge.origin + move, some_gauge.factor, tilt)
    torch.testing.assert_close(gauge_overlaps(moved, keys, unrelated), gauge_overlaps(some_gauge, keys, unrelated))


def test_the_gradient_of_the_overlap_is_that_of_finite_differences(keys, unrelated, some_gauge):
    def overlaps(factor, tilt):
        return gauge_overlaps(Gauge(some_gauge.origin, factor, tilt), keys, unrelated)

    at = (some_gauge.factor.requires_grad_(True), some_gauge.tilt.requires_grad_(True))
    assert torch.autograd.gradcheck(overlaps, at)


def test_the_gradient_holds_with_fewer_and_with_more_values_than_keys(keys, some_gauge):
    at = (some_gauge.factor.requires_grad_(True), some_gauge.tilt.requires_grad_(True))
    for columns in (DIM - 1, DIM + 2):
        values = orthonormal(drawn(HEADS, INPUTS, TOKENS, columns, seed=1))
        assert torch.autograd.gradcheck(
            lambda factor, tilt, own=values: gauge_overlaps(Gauge(some_gauge.origin, factor, tilt), keys, own), at
        )


def test_the_linear_limit_predicts_the_span_of_the_centred_keys(keys):
    frame = KeyFrame.of(keys.unbind(dim=1))
    spans = gauge_spans(Gauge.linear_limit(frame.mean, frame.axes), keys, DIM)
    centred = orthonormal(keys - keys.mean(dim=2, keepdim=True))
    torch.testing.assert_close(overlap(spans, centred), torch.ones(HEADS, INPUTS).double(), rtol=0, atol=1e-6)


def test_a_frame_does_not_depend_on_how_the_keys_are_written(keys):
    written = keys @ drawn(HEADS, 1, DIM, DIM, seed=6) + drawn(HEADS, 1, 1, DIM, seed=7)
    for before, after in zip(keys.unbind(dim=1), written.unbind(dim=1), strict=True):
        mine, other = KeyFrame.of(keys.unbind(dim=1)), KeyFrame.of(written.unbind(dim=1))
        torch.testing.assert_close(
            (before - mine.mean[:, None]) @ mine.axes, (after - other.mean[:, None]) @ other.axes, rtol=1e-8, atol=1e-8
        )


def hidden_values(keys):
    frame = KeyFrame.of(keys.unbind(dim=1))
    turn = torch.eye(DIM) * 0.6 + 0.2 * drawn(HEADS, DIM, DIM, seed=8)
    gauge = Gauge(frame.mean, frame.axes @ turn, 0.2 * drawn(HEADS, DIM, seed=9))
    return gauge, gauge_spans(gauge, keys, DIM)


def fit(keys, values, steps=30, scale=0.5):
    own = torch.full((len(keys),), scale, dtype=torch.float64)
    return gauge_fit(list(keys.unbind(dim=1)), list(values.unbind(dim=1)), own, steps=steps)


def test_a_hidden_gauge_is_found_and_holds_for_new_inputs():
    keys = skewed(HEADS, 12, 40, DIM)
    gauge, values = hidden_values(keys)
    found = fit(keys, values, steps=60)
    others = skewed(HEADS, 4, 40, DIM, seed=1)
    spans = gauge_spans(gauge, others, DIM)
    frame = KeyFrame.of(keys.unbind(dim=1))
    before = gauge_overlaps(Gauge.linear_limit(frame.mean, frame.axes), others, spans).mean(dim=1)
    after = gauge_overlaps(found, others, spans).mean(dim=1)
    assert (before < 0.9).all()
    assert (after > 0.99).all()


def test_a_fit_never_ends_below_the_linear_limit(keys, unrelated):
    frame = KeyFrame.of(keys.unbind(dim=1))
    linear = Gauge.linear_limit(frame.mean, frame.axes / DIM**0.5)
    used = [place for place in range(INPUTS) if place % CHECKED != CHECKED - 1]
    sample = GaugeSample.of(*([x[:, place] for place in used] for x in (keys, unrelated)))
    for steps in (0, 1, 5, 30):
        assert (sample.overlap(fit(keys, unrelated, steps)) >= sample.overlap(linear)).all()


def test_values_of_the_own_gauge_are_found_at_once(keys):
    own = Gauge.of(torch.eye(DIM).double().expand(HEADS, -1, -1) * 0.5**0.5, torch.zeros(HEADS, DIM).double())
    values = gauge_spans(own, keys, DIM)
    found = fit(keys, values, steps=0)
    torch.testing.assert_close(gauge_overlaps(found, keys, values), torch.ones(HEADS, INPUTS).double())


def test_keys_written_in_another_gauge_give_the_same_overlaps(keys, unrelated):
    written = keys @ drawn(HEADS, 1, DIM, DIM, seed=6) + drawn(HEADS, 1, 1, DIM, seed=7)
    before, after = (gauge_overlaps(fit(own, unrelated, steps=10), own, unrelated) for own in (keys, written))
    torch.testing.assert_close(before, after, rtol=0, atol=1e-8)


def test_inputs_of_different_lengths_share_a_fit():
    lengths = (20, 30, 20, 25, 30, 20)
    keys = [skewed(HEADS, tokens, DIM, seed=place) for place, tokens in enumerate(lengths)]
    values = [orthonormal(drawn(HEADS, tokens, DIM, seed=place)) for place, tokens in enumerate(lengths)]
    scale = torch.full((HEADS,), 0.5, dtype=torch.float64)
    sample = GaugeSample.of(keys, values)
    assert sorted(own.shape[1:3] for own in sample.keys) == [(1, 25), (2, 30), (3, 20)]
    gauge = gauge_fit(keys, values, scale, steps=5)
    apart = [gauge_overlaps(gauge, k[:, None], v[:, None]) for k, v in zip(keys, values, strict=True)]
    torch.testing.assert_close(sample.overlap(gauge), torch.cat(apart, dim=1).mean(dim=1))


def test_heads_do_not_influence_one_another(keys, unrelated):
    together = gauge_overlaps(fit(keys, unrelated, steps=10), keys, unrelated)
    apart = [
        gauge_overlaps(fit(k[None], v[None], steps=10), k[None], v[None]) for k, v in zip(keys, unrelated, strict=True)
    ]
    torch.testing.assert_close(together, torch.cat(apart), rtol=0, atol=1e-9)


def test_a_head_that_is_not_finite_leaves_the_others_alone(keys, unrelated):
    broken = keys.clone()
    broken[0, 0, 0, 0] = torch.nan
    found = gauge_overlaps(fit(broken, unrelated, steps=5), broken, unrelated)
    assert found[0].isnan().all()
    torch.testing.assert_close(found[1:], gauge_overlaps(fit(keys, unrelated, steps=5), keys, unrelated)[1:])


def test_more_inputs_at_a_time_than_fit_into_a_block_change_nothing(keys, unrelated, monkeypatch):
    before = fit(keys, unrelated, steps=5)
    monkeypatch.setattr("attnaudit.kernel.gauge_sample._BLOCK", {"cpu": 1})
    torch.testing.assert_close(fit(keys, unrelated, steps=5).factor, before.factor)
