"""Summaries in place of rows: the same verdicts, and the same bytes however a run is cut, stopped or repeated."""

import dataclasses
import importlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

import attnaudit
from attnaudit.api.audits import conclude
from attnaudit.audit.folding import fold
from attnaudit.audit.settings import AuditSettings
from attnaudit.audit.unit import AuditWorker
from attnaudit.claims.jury import judge
from attnaudit.claims.registry import CLAIMS
from attnaudit.errors import RunFolderError, UsageError
from attnaudit.protocol import Protocol
from attnaudit.records.audit import AuditedModel
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_rows import HeadRows
from attnaudit.records.head_summaries import HeadSummaries
from attnaudit.records.head_table import head_table
from attnaudit.records.summary_rows import SummaryRows
from attnaudit.statistics.means import mean_interval
from attnaudit.statistics.scores import Bounds
from tests.records.simulated_rows import GROUPS, MODEL, ROLES, THEORIES, Simulation

pytest.importorskip("timm")

SELECTION = AuditSettings(theories=tuple(THEORIES), references=ROLES).selection()
JUDGED = tuple(CLAIMS[name] for name in ("kpca-values", "ksvd-values", "keys-linear"))
CASES = {
    "usual": Simulation(),
    "few inputs": Simulation(1, inputs=3),
    "a single input": Simulation(2, inputs=1),
    "nothing lost": Simulation(3, lost=0, uninformative=0, unidentifiable=0),
    "half uninformative": Simulation(4, uninformative=0.5),
    "nothing informative": Simulation(5, uninformative=1),
    "most lost": Simulation(6, lost=0.6),
    "nothing identifiable": Simulation(7, unidentifiable=1),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_verdicts_and_scores_of_summaries_are_those_of_rows(case):
    groups = {} if case.seed == 3 else GROUPS
    rows = Evidence.of_table(case.rows())
    summaries = HeadSummaries(SummaryRows.of_table(fold(rows, SELECTION, groups)))
    judged = [
        judge(JUDGED, [AuditedModel(MODEL, heads, {}, Protocol.EXACT)], threshold=threshold, chance=0.1).verdicts
        for heads in (HeadRows(rows, groups), summaries)
        for threshold in (0.3, 0.8)
    ]
    assert judged[:2] == judged[2:]


def test_the_interval_of_a_head_in_summaries_is_that_of_its_own_numbers():
    """Worked out from the rows of one head, input group by input group."""
    simulation = dataclasses.replace(CASES["nothing lost"], inputs=12)
    rows = Evidence.of_table(simulation.rows())
    table = head_table(rows, MODEL, "procrustes", "kpca", GROUPS)
    own = table.heads == 0
    observed, null, planted = (table.references[name][own] for name in ("observed", "random_projection", "planted"))
    scores, groups = (observed - null) / (planted - null), table.inputs[own]
    expected = np.array([scores[groups == group].mean() for group in np.unique(groups)])
    assert len(expected) == 12 - 3
    summaries = HeadSummaries(SummaryRows.of_table(fold(rows, SELECTION, GROUPS)))
    (verdict,) = judge(JUDGED[:1], [AuditedModel(MODEL, summaries, {}, Protocol.EXACT)]).verdicts
    score = next(own for own in verdict.scores if own.measure == "procrustes").heads[0].score
    assert score.mean == pytest.approx(expected.mean(), abs=1e-12)
    plain = mean_interval(expected, 1 - 0.05 / 3)
    assert score.interval[0] < plain[0] < plain[1] < score.interval[1]  # the null was drawn by chance, too


def encoder():
    """Theories that predict, and one that is fitted; two inputs of one document."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 16, batch_first=True)
    more = {
        "claims": ("kpca-values", "ksvd-values", "keys-linear"),
        "measures": ("value_subspace_overlap", "procrustes", "column_cosine_matched", "linear_cka"),
        "groups": list("aabcdefghi"),
    }
    return torch.nn.TransformerEncoder(layer, 2).eval(), torch.randn(10, 20, 16), more


def windows():
    """Every input has four windows in the first layer."""
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    small = {"img_size": 56, "depths": (1, 1), "num_heads": (1, 2), "embed_dim": 16}
    model = timm.create_model("swin_tiny_patch4_window7_224", **small)
    more = {"measures": ("value_subspace_overlap", "procrustes", "column_cosine_matched", "eigenvalue_max")}
    return model.eval(), torch.randn(3, 3, 56, 56), more


def decoder():
    """Causal heads, which a theorem excludes for one theory and not for the other."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=50, n_positions=40)
    more = {"claims": ("kpca-values", "ksvd-values")}
    return transformers.GPT2LMHeadModel(config).eval(), {"input_ids": torch.randint(0, 50, (9, 30))}, more


@pytest.mark.parametrize("network", [encoder, windows, decoder])
def test_verdicts_ranking_statistics_and_layers_of_a_network_are_those_of_its_rows(network, tmp_path, monkeypatch):
    model, batch, more = network()
    rows = attnaudit.audit(model, batch, out=tmp_path, progress=False, **more)
    before, layers = (tmp_path / "summary.json").read_bytes(), rows.layers()
    monkeypatch.setattr(AuditWorker, "compute", lambda *_: pytest.fail("computed again"))
    summaries = attnaudit.audit(model, batch, out=tmp_path, progress=False, keep="summaries", **more)
    assert rows.verdicts
    assert (tmp_path / "summary.json").read_bytes() == before
    assert summaries.layers().equals(layers)


#: It comes with this package.
TRAINED = "vit-small-cifar"
#: A reference of every kind.
CHEAP = {
    "claims": ("kpca-values", "ksvd-values"),
    "measures": ("linear_cka", "value_subspace_overlap"),
    "references": ("random_projection", "other_head", "best_projection", "planted", "untrained"),
    "repeats": 2,
}


def run(folder, out, keep="summaries", **more):
    return attnaudit.audit(TRAINED, folder, out=out, keep=keep, **CHEAP | more)


def files(out):
    return {path.name: path.read_bytes() for path in sorted((out / "evidence").iterdir())}


@pytest.fixture(scope="module")
def rows(six_images, tmp_path_factory):
    return run(six_images, tmp_path_factory.mktemp("rows"), keep="rows")


@pytest.fixture(scope="module")
def summaries(six_images, tmp_path_factory):
    return run(six_images, tmp_path_factory.mktemp("summaries"))


def test_a_run_that_keeps_summaries_has_the_same_summary_and_one_small_part(rows, summaries):
    assert summaries.summary == rows.summary
    assert (summaries.path / "summary.json").read_bytes() == (rows.path / "summary.json").read_bytes()
    assert len(files(summaries.path)) == 1
    assert (rows.settings.keep, summaries.settings.keep) == ("rows", "summaries")


def test_it_can_be_opened_and_read_by_layer(rows, summaries):
    opened = attnaudit.open(summaries.path)
    assert opened.summary == rows.summary
    assert opened.heads.measured() == rows.heads.measured()
    assert "summarise the evidence" in repr(opened)
    ours, theirs = (own.layers().to_pydict() for own in (opened, attnaudit.open(rows.path)))
    assert ours == theirs


def test_its_page_is_written_without_rows(summaries, tmp_path):
    assert "kpca-values" in summaries.report(tmp_path / "page.html").read_text()


@pytest.mark.parametrize("ask", [lambda run: run.evidence, lambda run: run.rows, lambda run: run.frame()])
def test_what_needs_rows_is_refused_in_one_sentence(summaries, ask):
    with pytest.raises(RunFolderError, match=r"kept summaries and no rows, which this needs: repeat .* --keep rows"):
        ask(summaries)


def test_two_runs_are_compared_row_by_row_or_not_at_all(rows, summaries):
    with pytest.raises(RunFolderError, match="kept summaries and no rows"):
        attnaudit.diff(rows.path, summaries.path)


def test_rows_become_summaries_without_being_measured_again(image_folder, rows, summaries, tmp_path, monkeypatch):
    copy = shutil.copytree(rows.path, tmp_path / "copy")
    monkeypatch.setattr(AuditWorker, "compute", lambda *_: pytest.fail("computed again"))
    assert run(image_folder, copy).summary == rows.summary
    assert files(copy) == files(summaries.path)
    assert run(image_folder, copy).summary == rows.summary  # and repeating it computes nothing either


def test_summaries_do_not_become_rows(image_folder, summaries):
    before = files(summaries.path)
    with pytest.raises(RunFolderError, match="repeat the command with --keep summaries, or give --out another"):
        run(image_folder, summaries.path, keep="rows")
    assert files(summaries.path) == before


def test_units_may_finish_in_any_order(image_folder, summaries, tmp_path, monkeypatch):
    engine = importlib.import_module("attnaudit.records.engine.execute")
    forwards = engine._compute_here
    for number, order in enumerate((lambda units: units[::-1], lambda units: [*units[1:], units[0]])):
        monkeypatch.setattr(engine, "_compute_here", lambda units, worker, own=order: forwards(own(units), worker))
        assert files(run(image_folder, tmp_path / str(number)).path) == files(summaries.path)


def test_worker_processes_give_the_same_bytes(image_folder, summaries, tmp_path):
    assert files(run(image_folder, tmp_path / "parallel", workers=2).path) == files(summaries.path)


def test_a_cluster_gives_the_same_bytes(cluster, image_folder, summaries, tmp_path):
    there = run(image_folder, tmp_path / "there", cluster=cluster.scheduler_address)
    assert files(there.path) == files(summaries.path)
    assert there.summary == summaries.summary


KILLER = """
    import os, signal, sys
    import attnaudit
    from attnaudit.records.part_folder import PartFolder

    WHEN = int(sys.argv[3])  # units that are finished, or -1: summaries are written and rows not yet removed

    def progress(done, total, label):
        if done == WHEN:
            os.kill(os.getpid(), signal.SIGKILL)

    def removed(parts, keys):
        os.kill(os.getpid(), signal.SIGKILL)

    if __name__ == "__main__":
        if WHEN < 0:
            PartFolder.remove = removed
        attnaudit.audit("vit-small-cifar", sys.argv[1], out=sys.argv[2], keep="summaries", workers=1,
                        progress=progress, **CHEAP)
"""


@pytest.mark.parametrize("when", [1, -1], ids=["while measuring", "between summaries and rows"])
def test_a_killed_run_finishes_with_the_bytes_of_an_undisturbed_one(image_folder, summaries, tmp_path, when):
    script, out = tmp_path / "killer.py", tmp_path / "killed"
    script.write_text(f"CHEAP = {CHEAP!r}\n{textwrap.dedent(KILLER)}")
    process = subprocess.run([sys.executable, script, image_folder, out, str(when)], env=os.environ, check=False)
    assert process.returncode == -signal.SIGKILL
    assert not (out / "summary.json").exists()
    left = {*files(out)}
    assert ({*files(summaries.path)} <= left) == (when < 0)
    assert run(image_folder, out).summary == summaries.summary
    assert files(out) == files(summaries.path)


def test_damaged_summaries_are_named_when_opened_and_measured_again_when_resumed(
    image_folder, summaries, tmp_path, caplog
):
    copy = shutil.copytree(summaries.path, tmp_path / "run")
    (part,) = (copy / "evidence").iterdir()
    part.write_bytes(part.read_bytes()[:-9] + b"something")
    with pytest.raises(RunFolderError, match=f"{part.name} is damaged"):
        attnaudit.open(copy)
    run(image_folder, copy)
    assert f"{part.name} is damaged and is computed again" in caplog.text
    assert files(copy) == files(summaries.path)


def test_models_are_summarised_one_by_one(image_folder, tmp_path):
    """While the second is measured, the rows of the first are gone."""
    out, seen = tmp_path / "run", []

    def progress(done, total, label):
        seen.append(len(files(out)))

    more = {"claims": ("kpca-values",), "references": ("random_projection", "planted")}
    models = ["test_vit", "test_vit2"]
    attnaudit.audit(
        models,
        image_folder,
        random_weights=True,
        out=out,
        keep="summaries",
        workers=1,
        progress=progress,
        **CHEAP | more,
    )
    assert seen == [0, 1, 1, 2, 2]  # of two units each: its rows, then its summaries in their place


def test_what_to_keep_is_one_of_two_words():
    with pytest.raises(UsageError, match=r"Unknown keep 'sums'.* Known: rows, summaries"):
        attnaudit.audit(TRAINED, keep="sums")


def test_claims_can_be_judged_anew_with_other_thresholds(summaries, rows, tmp_path):
    claims = [CLAIMS[name] for name in CHEAP["claims"]]
    verdicts = [
        conclude(attnaudit.open(shutil.copytree(own.path, tmp_path / own.name)), claims, Bounds(0.4, 0.01)).verdicts
        for own in (summaries, rows)
    ]
    assert verdicts[0] == verdicts[1]
