"""The SST-2 experiment: what it writes of its networks, how sharp attention is, and the verdicts on its page."""

import csv

import pytest
import torch
from benchmarks import sst2_attention
from benchmarks.sst2_figure import noise_records, write_noises
from benchmarks.sst2_table import table

from attnaudit.attention import Diagnosis
from attnaudit.claims.registry import CLAIMS
from attnaudit.records.evaluated_networks import open_evaluation
from attnaudit.sources.encoder import SentenceTokens, read_encoder
from tests.claims.evaluations import judged, write_evaluation
from tests.claims.test_rpc_fine_tuned import ASYMMETRIC, SOFTMAX, network
from tests.sentence_data import sentences, write_encoder
from website.build import ROOT

RESULTS = ROOT / "docs" / "results"


@pytest.fixture
def evaluation(tmp_path):
    networks = [network("softmax", SOFTMAX, seed) for seed in range(2)]
    networks += [network("rpc", ASYMMETRIC, seed, clean=0.02, noisy=-0.05) for seed in range(2)]
    return open_evaluation(write_evaluation(tmp_path / "run", networks, images=872, kinds=("clean", "noise")))


def test_every_noise_has_a_mean_over_seeds_at_every_rate_from_clean_on(evaluation):
    found = {(own.recipe, own.noise, own.rate): own for own in noise_records(evaluation)}
    assert len(found) == 2 * 2 * 3
    assert found["softmax", "typos", 0.0].accuracy == pytest.approx(0.855)
    assert found["rpc", "typos", 0.0].accuracy == pytest.approx(0.875)
    assert found["rpc", "word-swap", 0.3].accuracy == pytest.approx(0.705)
    assert found["rpc", "word-swap", 0.3].low < 0.705 < found["rpc", "word-swap", 0.3].high


def test_the_figure_has_a_panel_per_noise_and_a_name_per_recipe(evaluation, tmp_path):
    pytest.importorskip("matplotlib")
    write_noises(evaluation, tmp_path)
    text = (tmp_path / "noises.svg").read_text()
    for name in ("word-swap", "typos", "softmax", "rpc"):
        assert text.count(f">{name}</text>") == 1, name
    assert len(list(csv.DictReader((tmp_path / "noises.csv").open()))) == 12


def test_the_table_has_gains_over_softmax_attention(evaluation):
    assert "| rpc | +2.00 [" in table(evaluation)


def test_the_tables_on_the_page_are_those_of_the_data_beside_it():
    """Accuracies of all, and gains over softmax attention of forms with queries, over symmetric attention of others."""
    page, parts = (RESULTS / "sst2" / "README.md").read_text(), ["accuracy"]
    shown = {"softmax": ("rpc-asymmetric-all", "rpc-asymmetric-two"), "symmetric": ("rpc-all", "rpc-two")}
    rows = []
    for line in table(open_evaluation(RESULTS / "sst2" / "evaluation")).replace("-", "−").splitlines():
        if line.startswith("Points over"):
            parts.append(line.split(",")[0].split()[-1])
        elif line.startswith("| sst2"):
            name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            name = name.removeprefix("sst2−").replace("−", "-")
            if parts[-1] == "accuracy":
                rows.append(f"| {name} | {' | '.join(cells[1:])} |")
            elif name in shown[parts[-1]]:
                rows.append(f"| {name} | {parts[-1]} | {' | '.join(cells)} |")
    assert len(rows) == 10
    assert [row for row in rows if row not in page] == []


@pytest.fixture
def encoder(tmp_path):
    pytest.importorskip("transformers")
    return read_encoder(str(write_encoder(tmp_path / "bert")))


def test_attention_of_every_layer_is_observed_and_none_is_sharper_than_uniform(encoder):
    texts = [sentence for sentence, _ in sentences()[:6]]
    tokens = SentenceTokens(encoder.tokenizer, encoder.config["pad_token_id"], 16)(texts)
    lengths = (tokens != encoder.config["pad_token_id"]).sum(dim=1)
    for form in sst2_attention.FORMS:
        layers = sst2_attention.last_attentions(encoder, form, tokens)
        assert len(layers) == encoder.depth
        for layer in layers:
            assert isinstance(layer, Diagnosis)
            assert (layer.entropy <= lengths.log()[:, None] + 1e-5).all()
    assert len(sst2_attention.table(encoder, tokens)) == 4 + len(sst2_attention.FORMS)


def test_attention_of_one_iteration_without_a_threshold_is_the_encoders_own(encoder):
    tokens = torch.tensor([[2, 5, 6, 7, 3]])
    attention, options = sst2_attention.FORMS["MiniLM's own"]
    architecture = sst2_attention.EncoderArchitecture(encoder=encoder.name, depth=encoder.depth)
    swapped = sst2_attention.EncoderArchitecture(
        encoder=encoder.name, depth=encoder.depth, attention=attention, attention_options=dict(options)
    )
    networks = (encoder.classifier(own, 0).encoder for own in (architecture, swapped))
    plain, observed = (network(input_ids=tokens).last_hidden_state for network in networks)
    torch.testing.assert_close(observed, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("claim", "folder", "words"),
    [
        (
            "rpc-fine-tuned", "sst2/evaluation",
            {"rpc-asymmetric-all": "a loss", "rpc-asymmetric-two": "a loss"}
            | {"rpc-all": "too wide", "rpc-two": "too wide"},
        ),
        ("rpc-segments-better", "segmentation/evaluations/*", {"segment-rpc4": "no gain"}),
    ],
)  # fmt: skip
def test_the_verdicts_on_the_pages_are_those_of_the_data_beside_them(claim, folder, words):
    found = judged(CLAIMS[claim], *sorted(RESULTS.glob(folder)))
    assert {own.model.removeprefix("sst2-"): own.finding.value for own in found} == words
