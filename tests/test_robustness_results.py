"""What the robustness experiment makes of its shares: the evaluation that would have been of all networks at once."""

import tarfile
from dataclasses import replace

import pytest
from benchmarks.robustness_jobs import Share
from benchmarks.robustness_results import pack, put_together

from attnaudit.api.robustness import robust
from attnaudit.errors import UsageError
from attnaudit.records.evaluated_networks import open_evaluation, open_evaluations
from attnaudit.records.evaluation import EvaluationFile, EvaluationSummary
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.run_kind import RunKind
from tests.robustness.subjects import write_model, write_parquet

pytest.importorskip("timm")
HOW = {"attacks": ["fgsm", "pgd:2", "autoattack:1@1/255"], "eps": ["1/255", "4/255"], "batch": 20}


@pytest.fixture
def evaluated(tmp_path, monkeypatch):
    """Two networks in a share each, and both in one folder."""
    monkeypatch.chdir(tmp_path)
    write_parquet(tmp_path / "test.parquet", 10)
    networks = ["rpc-0", "rpc-1"]
    for seed, name in enumerate(networks):
        facts = {"recipe": "rpc", "seed": seed, "epochs": 1}
        write_model(tmp_path / name, facts=facts, attention=("softmax", "symmetric")[seed])
    for names, out in (*(([name], f"shares/{name}") for name in networks), (networks, "all")):
        robust(names, "test.parquet", out=out, progress=False, device="cpu", **HOW)
    return tmp_path, [Share(tmp_path / "shares" / name, (), ()) for name in networks]


def content(path):
    folder = RunFolder(path)
    settings = folder.settings(EvaluationFile, RunKind.ROBUSTNESS)
    summary = folder.summary(EvaluationSummary, "")
    return replace(settings, parts=tuple(sorted(settings.parts))), replace(
        summary, accuracies=tuple(replace(entry, seconds=0.0) for entry in summary.accuracies)
    )


def test_shares_put_together_are_one_evaluation_of_all_networks(evaluated):
    runs, shares = evaluated
    together = put_together("together", shares, runs)
    assert content(together) == content(runs / "all")
    assert {file.name for file in together.iterdir()} >= {"accuracy.csv", "report.html", "run.json", "summary.json"}
    (joined,) = open_evaluations([share.folder for share in shares])
    assert joined == replace(open_evaluation(together), networks=joined.networks)


def test_what_is_not_finished_is_left_out(evaluated):
    runs, shares = evaluated
    (shares[0].folder / "summary.json").unlink()
    (network,) = open_evaluation(put_together("together", shares, runs)).networks
    assert network.label == "rpc-1"
    assert put_together("nothing", shares[:1], runs) is None


def test_shares_of_other_conditions_are_refused_by_name(evaluated):
    runs, shares = evaluated
    robust("rpc-1", "test.parquet", out=shares[1].folder, progress=False, device="cpu", **HOW | {"eps": ["1/255"]})
    with pytest.raises(UsageError, match=r"shares/rpc-1 is of other images or conditions than .*shares/rpc-0"):
        put_together("together", shares, runs)


def test_finished_shares_are_packed_so_that_they_can_be_judged_elsewhere(evaluated, tmp_path):
    runs, _ = evaluated
    write_model(tmp_path / "stopped", facts={"recipe": "rpc", "seed": 2, "epochs": 1})
    robust("stopped", "test.parquet", out=runs / "shares" / "stopped", progress=False, device="cpu", **HOW)
    (runs / "shares" / "stopped" / "summary.json").unlink()
    pack((), (), runs, tmp_path / "packed.tar.gz")
    with tarfile.open(tmp_path / "packed.tar.gz") as packed:
        packed.extractall(tmp_path / "home", filter="data")
    found = open_evaluations(sorted((tmp_path / "home" / "shares").iterdir()))
    assert [network.label for one in found for network in one.networks] == ["rpc-0", "rpc-1"]
    assert not list((tmp_path / "home").rglob("*.parquet"))
