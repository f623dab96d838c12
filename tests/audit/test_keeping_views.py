"""Maps of heads are kept beside an audit: the same bytes however it ran, and nothing else changes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest
import torch

import attnaudit
from attnaudit.audit import keeping_views
from attnaudit.audit.input_views import bytes_of
from attnaudit.errors import RunFolderError, UsageError
from attnaudit.records.head_views import FOLDER, read_views
from attnaudit.report.page.opened_heads import drawn_views
from tests.sources.hf_folders import TEXT, tiny_bert

pytest.importorskip("timm")

CHEAP = {"claims": (), "measures": ("column_cosine_matched",), "references": ("gaussian",), "repeats": 1}


def run(folder, out, **more):
    given = {"random_weights": True, "out": out, "progress": False, **CHEAP}
    return attnaudit.audit("test_vit", folder, **given | more)


def parts(out, *folders):
    return {path.name: path.read_bytes() for path in out.joinpath(*folders, "evidence").iterdir()}


@pytest.fixture(scope="module")
def kept(six_images, tmp_path_factory):
    """A run with maps of five of six images, which are in two shards."""
    return run(six_images, tmp_path_factory.mktemp("kept"), keep_maps=5)


def test_evidence_is_the_same_with_maps_and_without(kept, six_images, tmp_path):
    plain = run(six_images, tmp_path / "plain")
    assert parts(plain.path) == parts(kept.path)
    assert read_views(plain.path) == []


def test_every_head_of_the_first_inputs_is_kept_with_a_picture(kept):
    views = read_views(kept.path)
    assert [view.input for view in views] == [name for name, _ in kept.settings.identity.inputs][:5]
    rows = kept.evidence.to_pylist()
    heads = {(row["layer"], row["head"]) for row in rows}
    for view in views:
        assert view.picture.startswith(b"\xff\xd8")
        assert {(head.layer, head.head) for head in view.heads} == heads
        assert all(head.grid[0] * head.grid[1] == head.tokens - 1 for head in view.heads)


def test_cosines_of_a_view_are_those_of_the_evidence(kept):
    rows = {
        (row["input"], row["layer"], row["head"]): row["value"]
        for row in kept.evidence.to_pylist()
        if row["reference"] == "observed" and row["measure"] == "column_cosine_matched" and row["theory"] == "kpca"
    }
    for view in read_views(kept.path):
        for head in view.heads:
            mean = rows[view.input, head.layer, head.head]
            assert (mean is None) == (not head.cosines)
            if head.cosines:
                assert sum(head.cosines) / len(head.cosines) == pytest.approx(mean, rel=1e-4)


def test_worker_processes_give_the_same_bytes(kept, six_images, tmp_path):
    run(six_images, tmp_path / "two", workers=2, keep_maps=5)
    assert parts(tmp_path / "two", FOLDER) == parts(kept.path, FOLDER)


KILLER = """
    import os, signal, sys
    from pathlib import Path
    import attnaudit

    def progress(done, total, label):
        if "maps" in label and done == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    attnaudit.audit("test_vit", Path(sys.argv[1]), random_weights=True, out=sys.argv[2], progress=progress,
                    keep_maps=5, **CHEAP)
"""


def test_a_killed_run_is_resumed_with_the_same_bytes(kept, six_images, tmp_path):
    script, out = tmp_path / "killer.py", tmp_path / "killed"
    script.write_text(f"CHEAP = {CHEAP!r}\n{textwrap.dedent(KILLER)}")
    process = subprocess.run([sys.executable, script, six_images, out], env=os.environ, check=False)
    assert process.returncode == -signal.SIGKILL
    assert len(parts(out, FOLDER)) == 1
    assert len(read_views(out)) == 4  # those of the finished part
    run(six_images, out, keep_maps=5)
    assert parts(out, FOLDER) == parts(kept.path, FOLDER)


def test_a_damaged_part_is_named_and_computed_again(kept, six_images, tmp_path):
    out = shutil.copytree(kept.path, tmp_path / "copy")
    part = next((out / FOLDER / "evidence").iterdir())
    part.write_bytes(part.read_bytes()[:-1] + b"?")
    with pytest.raises(RunFolderError, match="is damaged"):
        read_views(out)
    run(six_images, out, keep_maps=5)
    assert parts(out, FOLDER) == parts(kept.path, FOLDER)


def test_maps_can_be_asked_for_later_and_of_more_inputs(six_images, tmp_path):
    for count, expected in ((None, 0), (2, 2), (6, 6), (None, 6)):
        found = run(six_images, tmp_path / "run", keep_maps=count)
        assert len(read_views(found.path)) == expected


def test_too_much_is_refused_with_its_size_before_anything_is_written(six_images, tmp_path, monkeypatch):
    monkeypatch.setattr(keeping_views, "MOST_BYTES", 100_000)
    with pytest.raises(UsageError, match=r"heads on 6 inputs would take about 0\.\d MB .*: keep [1-5] at most"):
        run(six_images, tmp_path / "run", keep_maps=1000)
    monkeypatch.setattr(keeping_views, "MOST_BYTES", 2_000)
    with pytest.raises(UsageError, match="leave --keep-maps out"):
        run(six_images, tmp_path / "run", keep_maps=1)
    assert not (tmp_path / "run").exists()


def test_the_estimate_is_what_a_page_takes(kept):
    for view in read_views(kept.path):
        taken = len(json.dumps(drawn_views([view]), separators=(",", ":")))
        estimated = len(view.picture) * 4 // 3 + sum(map(bytes_of, view.heads))
        assert taken <= estimated <= 1.25 * taken


@pytest.mark.parametrize("count", [0, -1])
def test_no_input_is_a_mistake(six_images, tmp_path, count):
    with pytest.raises(UsageError, match=f"--keep-maps must be ≥ 1, got {count}"):
        run(six_images, tmp_path / "run", keep_maps=count)


def test_an_input_that_cannot_be_read_says_so(image_folder, tmp_path):
    first = sorted(image_folder.rglob("*.png"))[0]
    first.write_bytes(b"no image")
    found = read_views(run(image_folder, tmp_path / "run", first=True, keep_maps=2).path)
    assert [bool(view.heads) for view in found] == [False, True]
    assert found[0].note.startswith("cannot be decoded")


def test_padding_is_left_out_of_the_tokens_and_numbers_stand_for_unknown_words(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=50
    )
    ids = torch.randint(5, 50, (2, 20))
    mask = torch.ones_like(ids)
    mask[1, 13:] = 0
    batch = {"input_ids": ids, "attention_mask": mask}
    model = transformers.BertModel(config).eval()
    found = attnaudit.audit(model, batch, out=tmp_path / "run", progress=False, keep_maps=2, **CHEAP)
    whole, padded = read_views(found.path)
    assert whole.tokens == tuple(f"#{number}" for number in ids[0].tolist())
    assert padded.tokens == tuple(f"#{number}" for number in ids[1, :13].tolist())
    assert all(head.tokens == 13 for head in padded.heads)
    assert padded.picture is None


def test_tokens_of_a_named_model_are_words(tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    bert = tiny_bert(tmp_path / "bert")
    found = attnaudit.audit(str(bert), text, kind="text", out=tmp_path / "run", progress=False, keep_maps=1, **CHEAP)
    (view,) = read_views(found.path)
    assert view.tokens == ("[CLS]", *TEXT.split(), "[SEP]")
    assert all(head.block is not None and head.grid is None for head in view.heads)


def test_heads_that_are_too_long_are_refused_before_anything_is_written(tmp_path):
    model = torch.nn.TransformerEncoderLayer(4, 1, 4, batch_first=True)
    with pytest.raises(UsageError, match="at most 4,096 tokens, and these have 4,097"):
        attnaudit.audit(model, torch.randn(1, 4097, 4), out=tmp_path / "run", progress=False, keep_maps=1, **CHEAP)
    assert not (tmp_path / "run").exists()
