"""Table 1 on a GPU against the plain loop on the same GPU.

    python benchmarks/gpu_table1.py [--images 100] [--reference-images 1]

DeiT-Tiny (trained weights and real images where ATTNAUDIT_DATA has them), images decoded beforehand for both. The
loop is `reference.py` on the GPU: head by head, torch's eigh, dense centring products, SciPy's assignment. Ours is a
whole run: forward, capture, measures, rows, Parquet files and summary.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch
from PIL import Image

import reference
from attnaudit.audit import AuditSettings, measure, plan_audit
from attnaudit.papers.tables import TABLES
from attnaudit.protocol import Protocol
from attnaudit.sources.data import data_file
from attnaudit.sources.images import find_images
from attnaudit.sources.inputs import shard_size, tensor_shards
from attnaudit.sources.model import load_model, parse_model

MODEL = "deit_tiny_patch16_224"
TABLE1 = TABLES["table1"].measures
ALL_HEADS = 114_000


def prepared_images(model, count: int) -> torch.Tensor:  # noqa: ANN001
    folder = data_file("imagenet_val")
    if folder is None:
        return torch.randn(count, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    prepare = model.preprocess(Protocol.PAPER)
    return torch.stack([prepare(Image.open(path).convert("RGB")) for path in find_images(folder)[:count]])


def ours(model, batch: torch.Tensor, protocol: Protocol, measures: tuple[str, ...]) -> float:  # noqa: ANN001
    settings = AuditSettings(protocol=protocol, measures=measures, device="cuda")
    best = float("inf")
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            torch.cuda.synchronize()
            begin = time.perf_counter()
            measure(plan_audit([model], tensor_shards(batch, shard_size("cuda")), settings), Path(folder) / "run")
            torch.cuda.synchronize()
            best = min(best, time.perf_counter() - begin)
    return best


def theirs(model, batch: torch.Tensor) -> float:  # noqa: ANN001
    """Seconds for these images, after one head that wakes the libraries."""
    with torch.device("cuda"):
        key, value = reference.keys_and_values(model, batch, 0)
        reference.similarity(key[0, 0], value[0, 0])
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for layer in range(len(model.blocks)):
            key, value = reference.keys_and_values(model, batch, layer)
            for k, v in zip(key.flatten(0, 1), value.flatten(0, 1), strict=True):
                reference.similarity(k, v)
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def main(images: int, reference_images: int) -> None:
    model = load_model(parse_model(MODEL, random_weights=data_file("imagenet_val") is None))
    batch = prepared_images(model, images)
    heads, few = len(batch) * 36, reference_images * 36
    print(f"{torch.cuda.get_device_name()}, {MODEL}, {len(batch)} images, {heads:,} heads")
    plain = theirs(model.module.cuda(), batch[:reference_images].cuda()) / few
    print(f"  plain loop             {plain * 1e6:9.0f} µs per head ({few} heads)")
    for name, protocol, measures in (
        ("Table 1, paper", Protocol.PAPER, TABLE1),
        ("Table 1, exact", Protocol.EXACT, TABLE1),
    ):
        spent = ours(model, batch, protocol, measures) / heads
        projected = f"{ALL_HEADS:,} heads in {spent * ALL_HEADS:.1f} s"
        print(f"  {name:<22} {spent * 1e6:9.1f} µs per head, {plain / spent:6.1f}x; {projected}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--reference-images", type=int, default=1)
    options = parser.parse_args()
    main(options.images, options.reference_images)
