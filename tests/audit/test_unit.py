"""Workers audit the model that the run began with, or say that theirs is another one."""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import attnaudit
from attnaudit.audit.unit import AuditRecipe
from attnaudit.errors import CaptureError, RunFolderError, WeightsError
from attnaudit.sources import load_model, parse_model
from tests.sources.hf_folders import TEXT, WORDS, tiny_bert, tiny_weights, write_tokenizer

CHEAP = {"claims": (), "references": ("gaussian", "untrained"), "measures": ("linear_cka",), "repeats": 1}


def change_config(folder, **values):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


SWAPS = {
    "weights": lambda folder: tiny_bert(folder, {name: 2 * own for name, own in tiny_weights().items()}),
    "number of heads": lambda folder: change_config(folder, num_attention_heads=8),
    "untrained twin": lambda folder: change_config(folder, initializer_range=0.5),
    "tokenizer": lambda folder: write_tokenizer(folder, [*WORDS[:-2], WORDS[-1], WORDS[-2]]),
}


@pytest.fixture
def text(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("\n".join(f"{TEXT} {word}" for word in ("cat", "dog", "tree", "runs")))
    return file


@pytest.fixture
def bert(tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tiny_bert(tmp_path / "bert")


def run(folder, text, out, **more):
    return attnaudit.audit(str(folder), text, kind="text", lines=True, out=out, **CHEAP, **({"progress": False} | more))


@pytest.mark.parametrize("swap", SWAPS)
def test_a_worker_refuses_a_model_that_was_swapped_after_the_start(bert, swap):
    loaded = load_model(parse_model(str(bert)))
    recipe = AuditRecipe(parse_model(str(bert)), loaded.fingerprint)
    (model,) = recipe.build(memory=1 << 30).models
    assert model.fingerprint == loaded.fingerprint
    SWAPS[swap](bert)
    with pytest.raises(WeightsError, match="than this run began with"):
        recipe.build(memory=1 << 30)


def test_local_workers_stop_at_what_was_swapped_after_the_start(bert, text, tmp_path):
    on_workers = {"workers": 2, "device": "cpu"}  # on a GPU this process computes, with the model that it has loaded
    with pytest.raises(WeightsError, match="than this run began with"):
        run(bert, text, tmp_path / "run", progress=lambda *_: SWAPS["tokenizer"](bert), **on_workers)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("swap", SWAPS)
def test_a_run_is_not_resumed_with_another_model(bert, text, tmp_path, swap):
    run(bert, text, tmp_path / "run", limit=1)
    SWAPS[swap](bert)
    with pytest.raises(RunFolderError, match="other models"):
        run(bert, text, tmp_path / "run", limit=1)


def test_a_worker_that_knows_an_older_model_loads_the_new_one(cluster, bert, text, tmp_path):
    there = {"cluster": cluster.scheduler_address, "limit": 2}
    run(bert, text, tmp_path / "before", **there)
    SWAPS["weights"](bert)
    after = run(bert, text, tmp_path / "after", **there)
    assert after.evidence.equals(run(bert, text, tmp_path / "here", limit=2).evidence)


class Attention(nn.Module):
    def __init__(self, fused):
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.fused = nn.Linear(16, 48), fused

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        if self.fused:
            return F.scaled_dot_product_attention(q, k, v)
        return torch.softmax(q @ k.mT / 8**0.5, dim=-1) @ v


def score(module, batch, out):
    options = CHEAP | {"references": ("gaussian",), "progress": False, "out": out}
    return attnaudit.audit(module, batch, **options).summary.observed("Attention")["linear_cka"]


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_modules_in_half_precision_are_audited_on_inputs_in_half_precision(tmp_path, fused, dtype):
    batch = torch.randn(2, 40, 16, generator=torch.Generator().manual_seed(1))
    whole, half = (
        score(Attention(fused).to(own), batch.to(own), tmp_path / str(own)) for own in (torch.float32, dtype)
    )
    assert half.n == whole.n == 4
    assert half.mean == pytest.approx(whole.mean, abs=0.02)


@pytest.mark.parametrize(
    "batch", [torch.zeros(2, 40, 17), torch.zeros(2, 40, 16, dtype=torch.bfloat16), torch.zeros(2, 40, 16) + 1j]
)
def test_a_module_that_fails_on_its_inputs_is_one_sentence(tmp_path, batch):
    with pytest.raises(CaptureError, match="Attention fails on input-0") as caught:
        score(Attention(fused=True), batch, tmp_path / "run")
    assert "\n" not in str(caught.value)
