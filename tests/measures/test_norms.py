import pytest
import torch

from attnaudit.kernel import token_norms
from attnaudit.measures.norms import norm_measures, trimmed_quartiles
from tests.heads import fixture_heads


def test_reference_projection_errors():
    result = {name: value.item() for name, value in norm_measures(token_norms(fixture_heads())).items()}
    assert result["projection_error_mae"] == pytest.approx(0.361667, rel=2e-6)
    assert result["projection_error_rel_output"] == pytest.approx(0.999483, rel=1e-6)
    assert result["projection_error_rel_phi"] == pytest.approx(2151.03, rel=3e-6)


def test_quartiles_leave_out_what_is_above_the_95th_percentile():
    q = trimmed_quartiles(torch.cat([torch.arange(1.0, 97.0), torch.full((4,), 1e9)]))
    assert q.count == 95
    assert (q.lower, q.median, q.upper) == pytest.approx((24.5, 48.0, 71.5))
