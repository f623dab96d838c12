from dataclasses import replace

import pytest
import torch

from attnaudit.kernel import TokenNorms, token_norms
from attnaudit.measures import DEFAULT_MEASURES, MEASURES
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.norms import OF_NORMS, norm_measures, trimmed_quartiles
from tests.heads import causal, fixture_heads, random_heads
from tests.measures.case import input_of


def test_reference_projection_errors():
    result = {name: value.item() for name, value in norm_measures(token_norms(fixture_heads())).items()}
    assert result["projection_error_mae"] == pytest.approx(0.361667, rel=2e-6)
    assert result["projection_error_rel_output"] == pytest.approx(0.999483, rel=1e-6)
    assert result["projection_error_rel_phi"] == pytest.approx(2151.03, rel=3e-6)


def test_quartiles_leave_out_what_is_above_the_95th_percentile():
    q = trimmed_quartiles(torch.cat([torch.arange(1.0, 97.0), torch.full((4,), 1e9)]))
    assert q.count == 95
    assert (q.lower, q.median, q.upper) == pytest.approx((24.5, 48.0, 71.5))


def test_tracking_shows_outputs_that_are_no_projections():
    norms = TokenNorms(torch.tensor([[1.0, 2.0, 4.0, 8.0]]).log(), torch.tensor([[3.0, 3.0, 3.0, 3.0]]))
    expected = {"phi_norm2_median": 3.0, "projection_error_signed": 0.75, "output_above_phi": 0.5}
    found = {name: value.item() for name, value in norm_measures(norms).items() if name in expected}
    assert found == pytest.approx(expected, rel=1e-6)


def test_audits_track_on_request_only():
    assert not {"phi_norm2_median", "projection_error_signed", "output_above_phi"} & set(DEFAULT_MEASURES)


@pytest.mark.parametrize("name", OF_NORMS)
def test_each_measure_is_its_function_of_the_norms(name):
    heads = random_heads(0)
    assert torch.equal(MEASURES[name].function(input_of(heads)), norm_measures(token_norms(heads))[name])


def test_the_norm_of_a_causal_query_counts_the_keys_that_it_sees_at_the_temperature_of_its_head():
    heads = causal(random_heads(0))
    scales = torch.tensor([0.2, 0.9], dtype=torch.float64)
    heads = replace(heads, scale=scales)
    factor = scales[:, None, None]
    seen = torch.exp(heads.query @ heads.key.mT * factor).tril().sum(dim=-1)
    expected = torch.exp(heads.query.square().sum(dim=-1) * scales[:, None]) / seen.square()
    torch.testing.assert_close(KeyKernel(heads).phi, expected)
