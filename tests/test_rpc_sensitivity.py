"""The map of λ, rules and iterations: what is trained and evaluated, what theory predicts of S, and its tables."""

import pytest
import torch
from benchmarks import rpc_sensitivity
from benchmarks import rpc_sensitivity_report as report

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
    assert found == rpc_sensitivity.uniform_share(key, value[..., :1, :], rule.tau(key, None, False), iterations)
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
    assert found == rpc_sensitivity.uniform_share(key, value.mean(dim=-2, keepdim=True), rule.tau(key, None, False), 1)


def planned(folder, *options):
    (folder / "test.parquet").touch()
    arguments = rpc_sensitivity.parser().parse_args(["--data", str(folder), "--corrupted", str(folder), *options])
    networks = rpc_sensitivity.networks_of(arguments)
    batches = rpc_sensitivity.batches_of(networks)
    return networks, [share for batch in batches for share in rpc_sensitivity.shares_of(batch, arguments)]


@pytest.mark.parametrize("cross", [(), ("--cross",)])
def test_evaluations_are_named_by_their_networks_whatever_other_seeds_there_are(tmp_path, cross):
    _, alone = planned(tmp_path, "--seeds", "1", *cross)
    _, both = planned(tmp_path, "--seeds", "0", "1", *cross)
    second = [share for share in both if any(own.seed == 1 for own in share.networks)]
    assert {(share.folder, share.networks) for share in alone} == {(share.folder, share.networks) for share in second}


@pytest.mark.parametrize("cross", [(), ("--cross",)])
def test_every_network_is_evaluated_once_under_each_condition(tmp_path, cross):
    networks, shares = planned(tmp_path, "--seeds", "0", "1", *cross)
    assert len({network.folder for network in networks}) == len(networks) == 2 * (8 + 5 + 2 if cross else 8 * 8)
    assert {network.lam for network in networks if network.preset != "code"} == {4.0}
    evaluated = [network for share in shares for network in share.networks]
    assert sorted(map(str, evaluated)) == sorted(map(str, 2 * networks))


def test_a_cross_changes_one_thing_at_a_time(tmp_path):
    networks, _ = planned(tmp_path, "--cross")
    centre = ("code", 4.0, 4)
    changed = [
        sum(a != b for a, b in zip((own.preset, own.lam, own.iterations), centre, strict=True)) for own in networks
    ]
    assert sorted(changed) == [0] + 14 * [1]


def row(iterations, seed, corrupted):
    return report.Row("code", 4.0, iterations, seed, 0.5, corrupted, 0.25, 3.0, 0.1, 0.0004, 0.2, 0.0)


def test_gains_are_over_the_centre_by_seed(tmp_path):
    """Points 1, 2 and 3 of seeds 0 to 2: mean 2, and t = 4.303 for two degrees of freedom, so ±4.303/√3 = ±2.48."""
    centre = [row(4, seed, 0.3 + 0.1 * seed) for seed in range(3)]
    more = [row(5, seed, 0.3 + 0.1 * seed + 0.01 * (seed + 1)) for seed in (2, 0, 1, 3)]
    assert report.gains(centre + more, "corrupted")["code", 4.0, 5] == pytest.approx([0.03, 0.01, 0.02])
    report.write_report(centre + more, tmp_path)
    lines = (tmp_path / "sensitivity.md").read_text().splitlines()
    assert lines[-1] == "| code | 4 | 5 | 3 | +0.00 | +2.00 [−0.48, +4.48] | +0.00 |"
    assert {file.name for file in tmp_path.iterdir()} == {
        *("sensitivity.csv", "sensitivity.md", "sensitivity.svg", "sensitivity-gains.svg")
    }


def test_one_seed_has_no_table_of_intervals(tmp_path):
    report.write_report([row(4, 0, 0.3), row(5, 0, 0.4)], tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"sensitivity.csv", "sensitivity.svg"}
