"""`attnaudit cost` prints a table and verdicts, again from its files, and refuses what it cannot measure."""

import json
import os

import pytest

from attnaudit.cost import measuring
from attnaudit.cost.networks import networks
from attnaudit.records import json_file
from attnaudit.records.cost import COST_FILE, read_costs
from tests.cost.tables import FORMS, SMALL, table


@pytest.fixture(autouse=True)
def quiet_variables(monkeypatch):
    """The command tells torch's profiler to be quiet; other tests need not know."""
    for name in ("KINETO_LOG_LEVEL", "TORCH_CPP_LOG_LEVEL"):
        monkeypatch.setenv(name, "0")


def test_networks_are_measured_written_and_judged(cli, capsys, monkeypatch, tmp_path):
    pytest.importorskip("timm")
    monkeypatch.setattr(measuring, "networks", lambda size: networks(size, **SMALL))
    code = cli("cost", "--sizes", "tiny", "--batch", 1, "--repeats", 2, "--device", "cpu", "--out", tmp_path, "--json")
    assert code == 0
    found = json.loads(capsys.readouterr().out)
    assert [own["attention"] for own in found["costs"]["networks"]] == list(dict(networks("tiny")))
    assert [verdict["model"] for verdict in found["verdicts"]] == [f"tiny: {form}" for form in FORMS]
    assert json_file.plain(read_costs(tmp_path)) == found["costs"]


def test_a_recorded_table_is_judged_again_without_measuring(cli, capsys, tmp_path):
    json_file.write(tmp_path / COST_FILE, table())
    assert cli("cost", "--recorded", tmp_path) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("Of 4 networks with published forms of RPC-Attention, 4 cost what is claimed")
    assert "rpc-cost: RPC-Attention is comparable to symmetric attention" in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--sizes", "huge"), 2, "Unknown size 'huge'. Known: tiny, small, base."),
        (("--sizes", ","), 2, "--sizes must not be empty"),
        (("--recorded", "nowhere"), 1, "nowhere does not exist: give a folder written by attnaudit cost."),
        (("--recorded", "nowhere", "--sizes", "tiny"), 2, "--sizes says what to measure, but --recorded measures noth"),
        (("--recorded", "nowhere", "--batch", "8"), 2, "--batch says what to measure, but --recorded measures nothing"),
        (("--sizes", "huge", "--out", "new"), 2, "Unknown size 'huge'. Known: tiny, small, base."),
    ],
)
def test_bad_arguments_are_one_sentence(refused, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    refused(("cost", *arguments), code, message)


def test_what_a_user_has_set_for_the_profiler_stays(cli, monkeypatch, tmp_path):
    monkeypatch.setenv("TORCH_CPP_LOG_LEVEL", "INFO")
    monkeypatch.delenv("KINETO_LOG_LEVEL")
    json_file.write(tmp_path / COST_FILE, table())
    assert cli("cost", "--recorded", tmp_path) == 0
    assert os.environ["TORCH_CPP_LOG_LEVEL"] == "INFO"
    assert os.environ["KINETO_LOG_LEVEL"] == "99"
