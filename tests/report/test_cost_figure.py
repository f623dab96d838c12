"""The figure and tables of costs: multiples of softmax attention of the same size."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from attnaudit.claims.jury import judge
from attnaudit.claims.registry import CLAIMS
from attnaudit.cost.networks import networks
from attnaudit.cost.operations import operations_by_hand
from attnaudit.records.cost import read_costs
from attnaudit.report.cost_figure import PASSES, QUANTITIES, cost_rows, measured, ratios
from attnaudit.report.costs import cost_report, write_costs
from tests.cost.tables import FORMS, pass_cost, table

RECORDED = Path(__file__).parents[2] / "docs" / "results" / "cost"
GRAPHS = ("time of a CUDA graph", "graph ms")
TIME, GRAPH = QUANTITIES["time", "ms"], QUANTITIES[GRAPHS]
COSTS = {
    "softmax": (pass_cost(time=2, memory=4, graph=1), pass_cost()),
    FORMS[0]: (pass_cost(time=3, memory=3), pass_cost()),
}


def printed(of, **settings):
    console = Console(width=200 if settings.get("wide") else 80)
    with console.capture() as capture:
        console.print(cost_report(of, judge([CLAIMS["rpc-cost"]], [of]).verdicts, **settings))
    return capture.get()


def test_a_network_is_compared_with_softmax_attention_of_its_size():
    found = ratios(table(COSTS, ("tiny", "base")), "inference", TIME)
    assert found["softmax", "base"] == 1
    assert found[FORMS[0], "tiny"] == pytest.approx(1.5)


def test_what_was_not_measured_of_either_has_no_ratio():
    assert ratios(table(COSTS), "inference", GRAPH) == {("softmax", "tiny"): 1}
    assert GRAPHS not in measured(table())


def test_what_was_measured_of_training_alone_is_shown():
    whole = table({"softmax": (pass_cost(), pass_cost(graph=1))})
    assert ("time of a CUDA graph", "graph ms") in measured(whole)
    assert cost_rows(whole)[0]["inference, graph ms"] is None
    assert cost_rows(whole)[0]["training, graph ms"] == pytest.approx(50)


def test_a_table_is_written_whole_and_drawn_alike_every_time(tmp_path):
    whole = table(COSTS, ("tiny", "base"))
    write_costs(whole, tmp_path / "first")
    write_costs(read_costs(tmp_path / "first"), tmp_path / "second")
    names = ["cost.csv", "cost.json", "cost.pdf", "cost.svg"]
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == names
    for name in names:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    with (tmp_path / "first" / "cost.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(whole.networks)


def test_the_answer_comes_first_and_80_columns_are_enough():
    text = printed(table(COSTS))
    words = " ".join(text.split())
    assert words.startswith("Of 4 networks with published forms of RPC-Attention, 3 cost what is claimed, 1 cost more")
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert "×0.75 ×1.00" in text


def test_a_wide_table_has_the_numbers_too():
    assert "300.00 (×1.50)" in printed(table(COSTS), wide=True)


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in RECORDED.glob("*/cost.json")))
def test_recorded_tables_have_the_operations_of_the_formulas_and_their_own_csv(folder):
    whole = read_costs(RECORDED / folder)
    by_name = {(own.size, own.attention): own for own in whole.networks}
    for size in whole.sizes:
        for name, architecture in networks(size):
            expected, own = operations_by_hand(architecture), by_name[size, name]
            assert (own.inference.operations, own.training.operations) == (expected.inference, expected.training)
    with (RECORDED / folder / "cost.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert written == [{name: str(value) for name, value in row.items()} for row in cost_rows(whole)]


def test_the_tables_of_the_page_have_the_recorded_numbers():
    whole = read_costs(RECORDED / "h200")
    page = (RECORDED / "README.md").read_text()
    for quantity, digits in {("operations", "GFLOP"): 2, ("memory", "MiB"): 0, GRAPHS: 2}.items():
        number, rows = QUANTITIES[quantity], page.split(f"\n| {quantity[1]}")[1].split("\n\n")[0].splitlines()[2:]
        over = {passed: ratios(whole, passed, number) for passed in PASSES}
        for own, row in zip(whole.of_size("tiny"), rows, strict=True):
            cells = [
                f"{number(getattr(network, passed)):,.{digits}f} (×{over[passed][network.attention, network.size]:.2f})"
                for network in whole.networks
                if network.attention == own.attention
                for passed in PASSES
            ]
            assert row == f"| {' | '.join([own.attention, *cells])} |"


@pytest.mark.parametrize(("folder", "both"), [("cpu", ", "), ("cpu-batch-8", ", "), ("h200", " and ")])
def test_the_page_has_the_verdicts_on_the_recorded_times(folder, both):
    page = (RECORDED / "README.md").read_text()
    verdicts = judge([CLAIMS["rpc-cost"]], [read_costs(RECORDED / folder)]).verdicts
    for verdict in verdicts:
        inference, training = re.findall(r"time (?:of a CUDA graph )?(×\S+ \[.*?\])", verdict.reason)
        row = next(line for line in page.splitlines() if f"{inference}{both}{training} |" in line)
        assert f"| {verdict.words}: " in row, verdict.model


def test_a_size_without_softmax_attention_has_no_ratios():
    whole = table()
    lacking = replace(whole, networks=tuple(own for own in whole.networks if own.attention != "softmax"))
    assert ratios(lacking, "inference", TIME) == {}
