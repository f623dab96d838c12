"""The tables of the robustness experiment: rows by recipe, gains by seed, what is missing as a dash."""

from benchmarks.robustness_tables import tables

from attnaudit.records.evaluated_networks import open_evaluations
from attnaudit.report.seed_gains import gain_records
from tests.claims.evaluations import pairs, write_evaluation


def lines_of(*paths):
    return tables(gain_records(open_evaluations(paths))).splitlines()


def test_accuracies_come_first_and_gains_after_them_without_the_baseline(tmp_path):
    lines = lines_of(write_evaluation(tmp_path / "run", pairs((0.01, 0.02, 0.03), (-0.05, -0.05, -0.05)), images=500))
    heads = [line for line in lines if line.startswith("|  |")]
    assert len(heads) == 2
    assert "| corrupted (500) |" in heads[0]
    sym, rpc, gained = (line for line in lines if line.startswith(("| sym |", "| rpc4 |")))
    assert sym.startswith("| sym | 3 | 81.0 [78.5, 83.5] | 61.0 [58.5, 63.5] |")
    assert rpc.startswith("| rpc4 | 3 |")
    assert gained.split(" | ")[3].startswith("+2.00 [−0.48, +4.48]")
    assert gained.split(" | ")[4].startswith("−5.00 [")


def test_what_was_not_run_is_a_dash(tmp_path):
    networks = pairs((0.0, 0.0), (0.0, 0.0))
    label, card, conditions, masked = networks[1]
    networks[1] = label, card, [c for c in conditions if c[0] != "corruption"], masked
    label, card, conditions, masked = networks[3]
    networks[3] = label, card, [c for c in conditions if c[0] != "corruption"], masked
    row = next(line for line in lines_of(write_evaluation(tmp_path / "run", networks)) if line.startswith("| rpc4 |"))
    assert row.split(" | ")[3] == "–"


def test_the_end_of_an_interval_just_below_0_keeps_its_sign(tmp_path):
    """Points 0.63, 0.63 and 1.2058: mean 0.8219, and t = 4.303 for two degrees of freedom, so ±0.8258."""
    networks = pairs((0.0063, 0.0063, 0.012058), (0.0, 0.0, 0.0))
    row = lines_of(write_evaluation(tmp_path / "run", networks, images=10**6))[-1]
    assert row.split(" | ")[3] == "+0.82 [−0.00, +1.65]"
