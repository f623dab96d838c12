"""Runs: the same evidence however they are cut, stopped or repeated."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch

import attnaudit
from attnaudit.audit import AuditSettings, plan_audit
from attnaudit.audit.unit import AuditRecipe, AuditWorker
from attnaudit.errors import InputError, RunFolderError, UsageError
from attnaudit.measures import select
from attnaudit.protocol import Protocol
from attnaudit.sources.images import find_images
from attnaudit.sources.model import ModelSpec
from attnaudit.sources.selection import InputSelection, select_inputs

pytest.importorskip("timm")

MODEL = "test_vit"
KEY = ["model", "input", "layer", "head", "window", "theory", "reference", "repeat", "measure"]


#: A reference of every kind: a null, an ideal, one that is fitted, and a network of its own.
CHEAP = {
    "claims": ("kpca-values", "ksvd-values"),
    "measures": ("linear_cka", "value_subspace_overlap"),
    "references": ("random_projection", "other_head", "best_projection", "planted", "untrained"),
    "repeats": 2,
}


def run(folder, out, **more):
    return attnaudit.audit(MODEL, folder, random_weights=True, out=out, **CHEAP | more)


def files(out):
    return {path.name: path.read_bytes() for path in sorted((out / "evidence").iterdir())}


@pytest.fixture(scope="module")
def finished(six_images, tmp_path_factory):
    """A run that tests may repeat and read, but not change."""
    return run(six_images, tmp_path_factory.mktemp("finished"))


def test_every_head_has_every_measure_once(finished):
    rows = finished.evidence.select(KEY)
    assert rows.num_rows == rows.group_by(KEY).aggregate([]).num_rows
    model = __import__("timm").create_model(MODEL)
    heads = len(model.blocks) * model.blocks[0].attn.num_heads
    for reference in ("observed", *CHEAP["references"]):
        measure = "value_subspace_overlap"
        repeats = 2 if reference == "random_projection" else 1  # the null alone is repeated
        inputs = {"untrained": 2, "other_head": 4}.get(reference, 6)  # what is shown, on the first shard
        for theory in ("kpca", "ksvd"):
            mine = (rows["reference"], reference), (rows["theory"], theory), (rows["measure"], measure)
            masks = [pc.equal(column, value) for column, value in mine]
            assert rows.filter(pc.and_(pc.and_(masks[0], masks[1]), masks[2])).num_rows == repeats * inputs * heads


def test_references_for_context_have_the_deciding_measures_only(finished):
    rows = finished.evidence
    found = {
        reference: set(rows.filter(pc.equal(rows["reference"], reference))["measure"].to_pylist())
        for reference in ("random_projection", "other_head", "planted", "untrained")
    }
    assert found.pop("other_head") == {"value_subspace_overlap"}
    assert all(measures == {"value_subspace_overlap", "linear_cka"} for measures in found.values())


def test_parts_are_plain_parquet_with_the_documented_columns(finished):
    table = pq.read_table(finished.path / "evidence")
    assert {
        "model",
        "input",
        "layer",
        "head",
        "reference",
        "measure",
        "value",
        "protocol",
        "tokens",
        "dim",
        "step",
    } <= set(table.column_names)
    assert table.num_rows == finished.evidence.num_rows


def test_run_json_says_what_was_run(finished):
    content = json.loads((finished.path / "run.json").read_text())
    assert content["identity"]["settings"]["protocol"] == "exact"
    assert len(content["identity"]["inputs"]) == 6
    assert content["versions"]["torch"] == __import__("importlib.metadata").metadata.version("torch")
    assert all(error < 1e-5 for error in content["certificates"].values())


def test_worker_processes_give_the_same_bytes(image_folder, finished, tmp_path):
    parallel = run(image_folder, tmp_path / "parallel", workers=2)
    assert files(parallel.path) == files(finished.path)
    assert parallel.summary == finished.summary


def test_workers_that_share_a_folder_do_not_predict_again_for_the_fits(image_folder, finished, tmp_path, monkeypatch):
    (model,), units = loaded(image_folder)
    alone, sharing = AuditWorker((model,), 1 << 33), AuditWorker((model,), 1 << 33, tmp_path)
    with sharing.context():
        tables = [[worker.compute(unit)[0] for unit in units[:-1]] for worker in (alone, sharing)]
        expected, _ = alone.compute(units[-1])
        monkeypatch.setattr("attnaudit.audit.unit.capture_prepared", lambda *_: pytest.fail("captured again"))
        found, _ = replace(sharing).compute(units[-1])  # another one in the same folder
    assert tables[0] == tables[1]
    assert found == expected
    assert found.num_rows


def loaded(folder):
    """The model of these runs and its units, the last of which is a fit."""
    spec = ModelSpec("timm", MODEL, random_seed=0)
    shards = select_inputs([spec], InputSelection(folder, None, known_only=True), Protocol.EXACT, "cpu").shards
    settings = AuditSettings.of(select(theories=("kpca", "ksvd"), **{k: CHEAP[k] for k in ("measures", "references")}))
    plan = plan_audit([spec], shards, settings)
    return plan.loaded, plan.units


def test_repeating_a_finished_run_computes_nothing(image_folder, finished, monkeypatch):
    monkeypatch.setattr(AuditWorker, "compute", lambda *_: pytest.fail("computed again"))
    assert run(image_folder, finished.path).summary == finished.summary


KILLER = """
    import os, signal, sys
    import attnaudit
    from pathlib import Path

    def progress(done, total, label):
        if done == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    if __name__ == "__main__":
        attnaudit.audit("test_vit", Path(sys.argv[1]), random_weights=True, out=sys.argv[2], workers=int(sys.argv[3]),
                        progress=progress, **CHEAP)
"""


def test_a_killed_run_finishes_with_the_evidence_of_an_undisturbed_one(image_folder, finished, tmp_path):
    script, out = tmp_path / "killer.py", tmp_path / "killed"
    script.write_text(f"CHEAP = {CHEAP!r}\n{textwrap.dedent(KILLER)}")
    process = subprocess.run([sys.executable, script, image_folder, out, "2"], env=os.environ, check=False)
    assert process.returncode == -signal.SIGKILL
    parts = files(out)
    assert not (out / "summary.json").exists()
    assert 1 <= len([name for name in parts if name.startswith("part-")]) <= 2
    resumed = run(image_folder, out)
    assert files(out) == files(finished.path)
    assert resumed.evidence.equals(finished.evidence)


def test_an_audit_that_lost_any_of_its_parts_is_resumed_with_the_same_bytes(tmp_path):
    """Fits, which need all inputs, are in parts of their own: here two after those of three shards."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 16, batch_first=True)
    model, batch = torch.nn.TransformerEncoder(layer, 2).eval(), torch.randn(9, 20, 16)

    def audited():
        return attnaudit.audit(model, batch, out=tmp_path / "run", progress=False, **CHEAP)

    summary, before = audited().summary, files(tmp_path / "run")
    parts = [path for path in (tmp_path / "run" / "evidence").iterdir() if path.suffix == ".parquet"]
    assert len(parts) == 5
    for part in parts:
        part.unlink()
        assert audited().summary == summary
        assert files(tmp_path / "run") == before


def test_leftovers_of_a_killed_writer_are_cleared_away(image_folder, finished):
    (finished.path / "evidence" / ".part-x.parquet.abc.tmp").write_bytes(b"half")
    run(image_folder, finished.path)
    assert not list((finished.path / "evidence").glob(".*"))


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"protocol": "paper"}, "settings .protocol exact there, paper here"),
        ({"limit": 2}, "inputs"),
        ({"seed": 1}, "models"),
    ],
)
def test_a_folder_of_another_run_is_refused_and_left_alone(image_folder, finished, more, what):
    before = files(finished.path)
    with pytest.raises(RunFolderError, match=what):
        run(image_folder, finished.path, **more)
    assert files(finished.path) == before


def test_a_folder_that_is_no_run_is_refused(image_folder, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunFolderError, match="neither empty nor a run folder"):
        run(image_folder, tmp_path)


def test_a_folder_that_cannot_be_written_is_refused(image_folder, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="cannot be written"):
        run(image_folder, tmp_path / "file" / "run")


def test_a_damaged_part_is_named_when_a_run_is_opened_and_computed_again_when_it_is_resumed(
    image_folder, finished, tmp_path, caplog
):
    copy = shutil.copytree(finished.path, tmp_path / "run")
    one, other = sorted((copy / "evidence").iterdir())[:2]
    one.write_bytes(other.read_bytes())
    with pytest.raises(RunFolderError, match=f"{one.name} is damaged"):
        attnaudit.open(copy)
    run(image_folder, copy)
    assert f"{one.name} is damaged and is computed again" in caplog.text
    assert files(copy) == files(finished.path)


def test_broken_images_are_counted_and_survive_resuming(image_folder, tmp_path):
    find_images(image_folder)[0].write_text("broken")
    for _ in range(2):
        result = run(image_folder, tmp_path / "run")
        assert [name for name, _ in result.summary.skipped_inputs] == ["class0/image0.png"]


def test_only_broken_images_are_an_error(image_folder, tmp_path):
    for path in find_images(image_folder):
        path.write_text("broken")
    with pytest.raises(InputError, match="None of the 6 inputs could be used"):
        run(image_folder, tmp_path / "run")


def test_a_run_that_could_use_no_input_leaves_no_folder_behind(image_folder, tmp_path):
    first, *others = find_images(image_folder)
    kept = first.read_bytes()
    for path in others:
        path.unlink()
    first.write_text("broken")
    out = tmp_path / "new" / "run"
    with pytest.raises(InputError, match=r"^The only input could not be used: class0/image0.png .*[^.]\.$"):
        run(image_folder, out)
    assert not out.parent.exists()
    first.write_bytes(kept)
    run(image_folder, out)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"out": "taken"}, RunFolderError, "taken is neither empty nor a run folder: give --out"),
        ({"out": "taken/note.txt"}, RunFolderError, "note.txt is a file: give --out another folder"),
        ({"keep_maps": 0}, UsageError, "--keep-maps must be ≥ 1, got 0"),
    ],
)
def test_what_is_wrong_about_the_folder_and_the_maps_is_said_before_a_model_is_looked_for(
    tmp_path, monkeypatch, settings, error, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "note.txt").write_text("mine")
    with pytest.raises(error, match=words):
        attnaudit.audit("no-such-model", **settings)


def test_a_module_in_memory_is_audited_without_a_folder():
    import timm

    torch.manual_seed(0)
    model = timm.create_model(MODEL)
    result = attnaudit.audit(model, torch.randn(5, 3, 160, 160), **CHEAP)
    assert result.evidence.num_rows > 0
    assert "kpca-values" in repr(result)
    assert result.models == ["VisionTransformer"]


class Patches(torch.nn.Module):
    """Takes pictures of any shape with as many patches; where a patch lies is all that tells shapes apart."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.patch, self.places = torch.nn.Conv2d(3, 16, 4, 4), torch.nn.Parameter(torch.randn(32, 16))
        self.attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x):
        tokens = self.patch(x).flatten(2).mT + self.places
        return self.attention(tokens, tokens, tokens)[0]


PICTURES = torch.randn(2, 3, 16, 32, generator=torch.Generator().manual_seed(0))
IN_MEMORY = {"measures": ("linear_cka",), "references": (), "claims": ()}


def test_a_folder_is_not_resumed_with_the_same_bytes_in_another_shape(tmp_path):
    model = Patches()
    first = attnaudit.audit(model, PICTURES, out=tmp_path, **IN_MEMORY)
    with pytest.raises(RunFolderError, match="a run with other inputs"):
        attnaudit.audit(model, PICTURES.reshape(2, 3, 32, 16), out=tmp_path, **IN_MEMORY)
    assert attnaudit.open(tmp_path).evidence.equals(first.evidence)


def test_a_folder_of_a_version_that_hashed_bytes_alone_is_computed_again(tmp_path, monkeypatch):
    model = Patches()
    with monkeypatch.context() as older:
        older.setattr("attnaudit.sources.inputs.digest", lambda *_, **__: "")
        first = attnaudit.audit(model, PICTURES, out=tmp_path, **IN_MEMORY)
    before = set(files(tmp_path))
    with pytest.raises(RunFolderError, match="a run with other inputs"):
        attnaudit.audit(model, PICTURES + 1, out=tmp_path, **IN_MEMORY)
    assert attnaudit.audit(model, PICTURES, out=tmp_path, **IN_MEMORY).evidence.equals(first.evidence)
    assert set(files(tmp_path)) > before


def test_a_module_in_memory_needs_tensors(image_folder):
    with pytest.raises(UsageError, match="needs a batch of tensors"):
        attnaudit.audit(torch.nn.Linear(2, 2), image_folder)


def test_unknown_measures_are_refused():
    with pytest.raises(UsageError, match="measure 'vibes'"):
        AuditSettings(measures=("vibes",)).selection()


def test_a_reference_is_drawn_at_least_once():
    with pytest.raises(UsageError, match=r"repeats .* 0"):
        AuditSettings(repeats=0).selection()


@pytest.mark.parametrize(("protocol", "rejected"), [("paper", True), ("exact", False)])
def test_overflowing_keys_are_counted_under_paper_and_measured_under_exact(protocol, rejected):
    """Keys of one layer scaled until float32 exp overflows."""
    import timm

    torch.manual_seed(0)
    model = timm.create_model(MODEL)
    width = model.embed_dim
    model.blocks[0].attn.qkv.weight.data[width : 2 * width] *= 25
    model.blocks[0].attn.qkv.weight.data[:width] /= 25
    result = attnaudit.audit(model, torch.randn(2, 3, 160, 160), protocol=protocol, references=(), claims=())
    statistic = result.summary.observed("VisionTransformer")["kernel_cka"]
    heads = 2 * model.blocks[0].attn.num_heads
    assert statistic.rejected == ({"float32 exp overflows in the kernel": heads} if rejected else {})
    lost = result.evidence.filter(pc.is_null(result.evidence["value"]))
    assert (lost.num_rows > 0) == rejected
    if rejected:
        assert set(lost["layer"].to_pylist()) == {0}


def test_the_recipe_of_a_worker_holds_names_and_no_model():
    spec = ModelSpec("timm", "deit_tiny_patch16_224")
    recipe = AuditRecipe(spec, "fingerprint")
    assert len(pickle.dumps(recipe)) < len(pickle.dumps(spec)) + 120
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    assert hash(pickle.loads(pickle.dumps(recipe))) == hash(recipe)
