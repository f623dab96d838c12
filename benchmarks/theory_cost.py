"""What each theory costs per head and input, with its references: CPU milliseconds, and as a multiple of kernel PCA."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks.theory_table import REFERENCES

import attnaudit
from attnaudit import defaults
from attnaudit.audit.ranking import MEASURES
from attnaudit.capture.heads import Heads
from attnaudit.capture.key_heads import by_key_head
from attnaudit.measures import select
from attnaudit.measures.cross_fits import CrossFits
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measuring import measure_heads
from attnaudit.numerics.threads import single_threaded
from attnaudit.protocol import Protocol
from attnaudit.sources.model import load_model
from attnaudit.sources.selection import InputSelection, select_inputs, select_specs
from attnaudit.theories.base import is_fitted
from attnaudit.theories.registry import ALL, THEORIES


def layers_of(model: str, weights: Path | None, limit: int, layer: int) -> list[Heads]:
    """The heads of one layer, shard by shard."""
    specs = select_specs([model], weights=weights, random_weights=False, seed=0, download=False)
    loaded = load_model(specs[0])
    asked = InputSelection(None, limit, 0, False, False, kind=None, by_folder=False)
    found = []
    for shard in select_inputs(specs, asked, Protocol.EXACT, "cpu").shards:
        prepared = shard.prepare(loaded, Protocol.EXACT, limit)
        heads = attnaudit.capture(loaded.module, prepared.inputs, prepared.names).layers
        found += [by_key_head(own) for own in heads if own.index[0].layer == layer]
    return found


def cost(theory: str, layers: list[Heads]) -> float:
    """CPU seconds for all heads of these layers, references included."""
    chosen = select(measures=MEASURES, theories=[theory], references=REFERENCES, repeats=defaults.REPEATS)
    inputs = list(dict.fromkeys(entry.input for heads in layers for entry in heads.index))
    begun = time.process_time()
    if is_fitted(THEORIES[theory]):
        fits = CrossFits(chosen, {name: place % 2 for place, name in enumerate(inputs)}, inputs[:2])
        for heads in layers:
            fits.add(KeyKernel(heads))
        fits.fit()
        for heads in layers:
            list(fits.measured(KeyKernel(heads)))
    else:
        list(measure_heads(layers, chosen))
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--limit", type=int, default=12)
    parser.add_argument("--layer", type=int, default=2)
    arguments = parser.parse_args()
    with single_threaded():
        layers = layers_of(arguments.model, arguments.weights, arguments.limit, arguments.layer)
        count = sum(map(len, layers))
        print(f"{arguments.model}, layer {arguments.layer}: {count} heads and inputs of {layers[0].tokens} tokens")
        cost("kpca", layers)  # once without counting
        costs = {theory: cost(theory, layers) for theory in ALL}
    for theory, seconds in costs.items():
        print(f"| `{theory}` | {1e3 * seconds / count:.1f} | {seconds / costs['kpca']:.1f} |")


if __name__ == "__main__":
    main()
