"""How sharp is MiniLM's attention with each form of attention, before fine-tuning?

    python -m benchmarks.sst2_attention --data sst2

prints the entropy of every layer on all test sentences: of the pretrained network, and right after each form of
docs/results/sst2/recipes is put in. For RPC-Attention it is that of the last iteration, which makes the output, and the
share of S is that of all layers. Attention that is uniform over a sentence of n tokens has entropy log n. A CPU does it
in a minute.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from attnaudit.attention import Diagnosis, diagnosing
from attnaudit.records.architecture import EncoderArchitecture
from attnaudit.sources.encoder import PretrainedEncoder, SentenceTokens, read_encoder
from attnaudit.sources.sentences import read_sentences

#: Of the recipes.
CONTEXT = 64
#: RPC-Attention with queries, one iteration and a threshold that nothing exceeds is softmax attention, observed.
FORMS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "MiniLM's own": ("rpc", {"iterations": 1, "asymmetric": True, "lam": 1e9}),
    "symmetric": ("symmetric", {}),
    "RPC with queries": ("rpc", {"iterations": 2, "asymmetric": True}),
    "RPC": ("rpc", {"iterations": 2}),
}


@torch.no_grad()
def last_attentions(encoder: PretrainedEncoder, form: str, tokens: Tensor) -> list[Diagnosis]:
    """What makes the output of every layer, with one form in all of them."""
    attention, options = FORMS[form]
    model = encoder.classifier(
        EncoderArchitecture(
            encoder=encoder.name, classes=2, context=tokens.shape[1], depth=encoder.depth, attention=attention,
            attention_options=dict(options),
        ),
        0,
    )  # fmt: skip
    with diagnosing(model) as found:
        model(tokens)
    return [passes[-1] for passes in found.values()]


def table(encoder: PretrainedEncoder, tokens: Tensor) -> list[str]:
    """Markdown, a row per form: mean entropy by layer, and the share of S."""
    lengths = (tokens != encoder.config["pad_token_id"]).sum(dim=1).double()
    lines = [
        f"Uniform attention on these {len(tokens)} sentences: {float(lengths.log().mean()):.2f}.", "",
        "| entropy in layer | " + " | ".join(map(str, range(encoder.depth))) + " | share of S |",
        "|" + " --- |" * (encoder.depth + 2),
    ]  # fmt: skip
    for form in FORMS:
        layers = last_attentions(encoder, form, tokens)
        shares = [float(own.nonzero.mean()) for own in layers if own.nonzero is not None]
        cells = [f"{float(own.entropy.mean()):.2f}" for own in layers]
        lines.append(f"| {form} | {' | '.join(cells)} | {f'{fmean(shares):.4f}' if shares else ''} |")
    return lines


def main(arguments: argparse.Namespace) -> None:
    encoder = read_encoder(arguments.encoder)
    sentences = read_sentences(arguments.data / "test.tsv").evenly_spaced(arguments.limit).sentences
    tokens = SentenceTokens(encoder.tokenizer, int(encoder.config["pad_token_id"]), CONTEXT)(sentences)
    print("\n".join(table(encoder, tokens)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("sst2"), help="folder with test.tsv")
    parser.add_argument("--encoder", default="minilm", help="minilm, or a folder")
    parser.add_argument("--limit", type=int, help="so many sentences, evenly spaced; all if left out")
    main(parser.parse_args())
