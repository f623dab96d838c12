"""The share of S that the theory of the threshold predicts."""

import pytest
import torch
from benchmarks.rpc_sensitivity import LAMBDA, settings_of, shares_of, uniform_share
from benchmarks.rpc_sensitivity import parser as options

from attnaudit.attention.functional.pursuit import PRESETS, Pursuit, pursue


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("iterations", range(2, 9))
def test_with_outputs_that_are_alike_the_prediction_is_exact(preset, iterations):
    """If all values are v̄, every L is v̄, and S has the entries with n·|k - v̄| > τ, whatever left K before."""
    source = torch.Generator().manual_seed(iterations)
    key = 0.3 * torch.randn(2, 3, 50, 16, generator=source, dtype=torch.float64)
    value = (0.1 * torch.randn(2, 3, 1, 16, generator=source, dtype=torch.float64)).expand_as(key)
    rule = Pursuit.preset(preset, iterations=iterations, lam=1.5)
    passes = []
    pursue(key, value, rule, observe=passes.append)
    assert not (passes[0].sparse != 0).any()  # of the first step, which has no outputs yet, nothing else is said
    found = float((passes[-1].sparse != 0).double().mean())
    assert found == uniform_share(key, value[..., :1, :], rule.tau(key, None, False), iterations)
    if iterations > 6:
        assert 0 < found < 1


@pytest.mark.parametrize("preset", PRESETS)
def test_the_first_iteration_shrinks_the_keys_themselves(preset):
    source = torch.Generator().manual_seed(0)
    key, value = (torch.randn(2, 3, 50, 16, generator=source, dtype=torch.float64) for _ in range(2))
    rule, passes = Pursuit.preset(preset, iterations=1, lam=0.3), []
    pursue(key, value, rule, observe=passes.append)
    found = float((passes[-1].sparse != 0).double().mean())
    assert 0 < found < 1
    assert found == uniform_share(key, value.mean(dim=-2, keepdim=True), rule.tau(key, None, False), 1)


def test_evaluations_are_named_by_their_networks_whatever_other_seeds_there_are(tmp_path):
    (tmp_path / "test.parquet").touch()
    names = []
    for seeds in (("1",), ("0", "1")):
        arguments = options().parse_args(["--data", str(tmp_path), "--corrupted", str(tmp_path), "--seeds", *seeds])
        shares = shares_of(settings_of(arguments), arguments)
        names.append({share.folder for share in shares if all(own.seed == 1 for own in share.networks)})
    assert names[0] == names[1]


def test_every_network_is_evaluated_once_under_each_condition(tmp_path):
    (tmp_path / "test.parquet").touch()
    arguments = options().parse_args(["--data", str(tmp_path), "--corrupted", str(tmp_path), "--seeds", "0", "1"])
    settings = settings_of(arguments)
    assert len({setting.folder for setting in settings}) == len(settings) == 2 * 8 * 8
    assert {setting.lam for setting in settings if setting.preset != "code"} == {LAMBDA}
    evaluated = [network for share in shares_of(settings, arguments) for network in share.networks]
    assert sorted(map(str, evaluated)) == sorted(map(str, 2 * settings))
