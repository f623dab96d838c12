"""Change the last token of a text: what kernel PCA predicts for the others moves, and their values stay.

    python benchmarks/last_token.py MODEL [--text FILE] [--limit 8]

Runs a causal language model on texts, and on the same texts with another last token. Prints, over all key heads and
the tokens before the last one: the largest change of their values, relative to the largest value of the layer, the
mean of 1 - |cosine| of the columns that kernel PCA of all tokens predicts for them, and the same for keys and values.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from attnaudit.capture import Heads, capture
from attnaudit.capture.key_heads import by_key_head
from attnaudit.errors import InputError
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.prefixes import COMPONENTS, matched_cosines
from attnaudit.protocol import Protocol
from attnaudit.sources.model import load_model, parse_model
from attnaudit.sources.selection import InputSelection, select_inputs


def both_ways(model: torch.nn.Module, inputs: dict[str, Tensor]) -> Iterator[tuple[Heads, Heads]]:
    """The layers of a model for a text, and for the text with another last token."""
    ids = inputs["input_ids"]
    others = ids.clone()
    others[:, -1] = ids[:, ids.shape[1] // 2] if bool((ids[:, -1] != ids[:, ids.shape[1] // 2]).all()) else ids[:, 1]
    first, second = (capture(model, {**inputs, "input_ids": own}).layers for own in (ids, others))
    yield from zip(map(by_key_head, first), map(by_key_head, second), strict=True)


def predicted_change(first: Heads, second: Heads) -> Tensor:
    """1 - mean |cosine| of the leading columns that all tokens predict for those before the last one."""
    count = min(COMPONENTS, first.value.shape[-1])
    before, after = (KeyKernel(own).unit_axes.values[:, :-1, :count] for own in (first, second))
    return 1 - matched_cosines((before, after))


def relative_change(first: Tensor, second: Tensor) -> float:
    """The largest change of what belongs to tokens before the last one, over the largest entry."""
    return float((first[:, :-1] - second[:, :-1]).abs().max() / first.abs().max())


def main() -> None:
    options = _options()
    spec = parse_model(options.model)
    loaded = load_model(spec)
    selection = InputSelection(place=options.text, limit=options.limit, kind="text")
    predicted, values, keys, heads = [], 0.0, 0.0, 0
    for shard in select_inputs([spec], selection, Protocol.EXACT).shards:
        prepared = shard.prepare(loaded, Protocol.EXACT)
        if not isinstance(prepared.inputs, dict):
            raise InputError(f"{options.model} does not read tokens: name a language model.")
        for place in range(len(prepared.names)):
            mask = prepared.inputs["attention_mask"][place].bool()
            one = {name: own[place : place + 1, mask] for name, own in prepared.inputs.items()}
            for first, second in both_ways(loaded.module, one):
                predicted.append(predicted_change(first, second))
                values = max(values, relative_change(first.value, second.value))
                keys = max(keys, relative_change(first.key, second.key))
                heads += len(first)
    effect = torch.cat(predicted)
    print(f"{options.model}: {heads:,} key heads and inputs; tokens before the last one, if the last one is another")
    print(f"  keys and values change by at most {keys:.1e} and {values:.1e} of the largest")
    print(f"  predicted columns turn by 1 - |cosine| = {effect.mean():.3f} on average, {effect.max():.3f} at most")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="as `attnaudit audit` takes it")
    parser.add_argument("--text", type=Path, help="a text file; the Python reference by default")
    parser.add_argument("--limit", type=int, default=8, help="number of passages")
    return parser.parse_args()


if __name__ == "__main__":
    main()
