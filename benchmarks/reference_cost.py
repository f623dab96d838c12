"""What the references cost beside the observed audit: they share its spectra, so a reference costs only its measures.

    python benchmarks/reference_cost.py [--images 8]

One thread, DeiT-Tiny (trained weights where ATTNAUDIT_DATA has them), noise for images, `exact` protocol, all default
measures, kernel PCA, the null drawn four times. Best projections are fitted to the images of a shard, in a pass of
their own; noise and gauges are tried on two images, whatever their number. Prints ms per head of the observed audit and
of each reference, and their ratio.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import torch

from attnaudit.audit.gathering import SAMPLE
from attnaudit.capture import Heads, capture
from attnaudit.defaults import REPEATS
from attnaudit.measures import REFERENCES, select
from attnaudit.measures.ceiling import Ceiling
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measuring import measure_heads, measure_network
from attnaudit.measures.sensitivity import measure_sensitivity
from attnaudit.protocol import Protocol
from attnaudit.records.head_id import HeadId
from head_cost import SHARD, build, run_on_one_thread


def main(images: int) -> None:
    model = build()
    batch = torch.randn(images, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    seconds: Counter[str] = Counter()
    for start in range(0, images, SHARD):
        shard = batch[start : start + SHARD]
        begin = time.perf_counter()
        layers = capture(model, shard).layers
        list(measure_heads(layers, select()))
        seconds["observed"] += time.perf_counter() - begin
        for name, reference in REFERENCES.items():
            if reference.network or reference.fitted:
                continue
            begin = time.perf_counter()
            repeats = REPEATS if name == "random_projection" else 1  # it is the null of an audit, the others are shown
            list(measure_heads(layers, select(references=[name], repeats=repeats)))
            # The observed part runs again here: what is left after taking it out is the reference's own.
            seconds[name] += time.perf_counter() - begin
            begin = time.perf_counter()
            list(measure_heads(layers, select()))
            seconds[name] -= time.perf_counter() - begin
        begin = time.perf_counter()
        list(measure_network(capture(model, shard).layers, REFERENCES["untrained"], select()))
        seconds["untrained"] += time.perf_counter() - begin
        begin = time.perf_counter()
        ceiling = Ceiling(select().theories, {entry.input: place % 2 for place, entry in enumerate(_inputs(layers))})
        for layer in capture(model, shard).layers:
            ceiling.add(KeyKernel(layer))
        list(ceiling.measure(Protocol.EXACT))
        seconds["best_projection"] += time.perf_counter() - begin
    sample = [layer.part(0, SAMPLE * len(layer) // len(shard)) for layer in layers]
    sensitivity = select(references=["planted_with_noise", "reparametrised"])
    begin = time.perf_counter()
    for layer in sample:
        list(measure_sensitivity(KeyKernel(layer), sensitivity, [entry.input for entry in _inputs([layer])]))
    seconds["noise and gauges"] += time.perf_counter() - begin
    heads = images * 36
    for name, total in seconds.items():
        print(f"{name:<18}{total / heads * 1e3:7.2f} ms per head")
    references = sum(total for name, total in seconds.items() if name != "observed")
    print(f"all references / observed = {references / seconds['observed']:.2f}")


def _inputs(layers: Sequence[Heads]) -> list[HeadId]:
    return list({entry.input: entry for entry in layers[0].index}.values())


if __name__ == "__main__":
    run_on_one_thread(main, __doc__ or "")
