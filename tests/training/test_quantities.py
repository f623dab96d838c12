"""The numbers of a monitor, against float64 written the plain way."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnaudit.capture import HeadId
from attnaudit.training.quantities import batch_measures, token_numbers, why_missing
from tests.heads import fixture_heads, random_heads


def plain(query, key, output):
    """‖φ‖² and ‖h‖² of each token of one head, as the formulas stand."""
    scale = 1 / np.sqrt(key.shape[-1])
    mass = np.exp(query @ key.T * scale).sum(axis=1)
    return np.exp((query**2).sum(axis=1) * scale) / mass**2, (output**2).sum(axis=1)


def plain_measures(phi, h):
    return {
        "phi_norm2": phi.mean(),
        "phi_norm2_median": np.median(phi),
        "output_norm2": h.mean(),
        "projection_error_signed": (phi - h).mean(),
        "projection_error_mae": np.abs(phi - h).mean(),
        "projection_error_rel_output": (np.abs(phi - h) / (h + 1e-8)).mean(),
        "projection_error_rel_phi": (np.abs(phi - h) / (phi + 1e-8)).mean(),
        "output_above_phi": (h > phi).mean(),
    }


def test_the_reference_head_has_the_values_of_the_specification():
    heads = fixture_heads()
    found = {name: value.item() for name, value in batch_measures(token_numbers(heads, legacy=False)).items()}
    expected = plain_measures(*plain(heads.query[0].numpy(), heads.key[0].numpy(), heads.output[0].numpy()))
    assert found == pytest.approx(expected, rel=1e-12)
    assert found["projection_error_mae"] == pytest.approx(0.361667, rel=2e-6)
    assert found["projection_error_rel_output"] == pytest.approx(0.999483, rel=1e-6)
    assert found["projection_error_rel_phi"] == pytest.approx(2151.03, rel=3e-6)
    assert found["phi_norm2"] == pytest.approx(1.8733e-4, rel=5e-5)
    assert found["phi_norm2_median"] == pytest.approx(1.73421e-4, rel=6e-6)
    assert found["output_norm2"] == pytest.approx(0.361854, rel=2e-6)


def test_numbers_are_over_the_tokens_of_all_inputs_and_windows_head_by_head():
    """Three inputs of two windows of two heads, in the order of a capture."""
    heads = random_heads(0, heads=12)
    heads = replace(heads, output=0.15 * heads.output)  # so that some tokens are above and some below
    places = [(place, window, head) for place in range(3) for window in range(2) for head in range(2)]
    heads = replace(heads, index=tuple(HeadId("m", f"b/{p}", 4, head, window) for p, window, head in places))
    found = batch_measures(token_numbers(heads, legacy=True))
    for head in range(2):
        mine = [place for place, entry in enumerate(places) if entry[2] == head]
        tokens = [plain(*(getattr(heads, n)[place].numpy() for n in ("query", "key", "output"))) for place in mine]
        expected = plain_measures(*(np.concatenate(both) for both in zip(*tokens, strict=True)))
        assert {name: found[name][head].item() for name in expected} == pytest.approx(expected, rel=1e-12)
        assert 0 < found["output_above_phi"][head] < 1


def test_the_temperature_is_the_models_own():
    heads = random_heads(0)
    other = replace(heads, scale=heads.scale / 3)
    assert not torch.allclose(token_numbers(heads, legacy=False)[0], token_numbers(other, legacy=False)[0])


def test_a_mean_whose_sum_overflows_is_still_a_number():
    numbers = torch.stack([torch.full((1, 100), 709.0), torch.zeros(1, 100)]).double()
    assert batch_measures(numbers)["phi_norm2"].item() == pytest.approx(np.exp(709.0))


def test_a_norm_beyond_float64_is_missing_and_says_so():
    numbers = torch.tensor([[[1.0, 800.0], [1.0, 2.0]], [[1.0, 1.0], [1.0, 1.0]]]).double()
    assert batch_measures(numbers)["projection_error_mae"].isfinite().tolist() == [False, True]
    assert "beyond float64" in why_missing(numbers)[0]
    assert "beyond float64" not in why_missing(numbers)[1]
