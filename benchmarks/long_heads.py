"""Long heads and many heads: how cost grows, and how exact the matrix-free spectrum is.

    python benchmarks/long_heads.py [--device cpu|cuda] [--largest 16384] [--heads 1000] [--out FOLDER]

1. Accuracy: keys of three layers of DeiT-Tiny on an image of 1024 x 1024 (4,097 tokens; noise, or the first image
   ATTNAUDIT_DATA has), matrix-free against all eigenpairs of the matrix (`--accuracy`).
2. Growth: time and peak memory of the spectrum of one head (d = 64) against tokens from 197 to `--largest`, and of
   heads of 197 tokens against their number from 100 to `--heads`; log-log slopes, and `growth.svg` and `growth.csv` in
   --out.
"""

from __future__ import annotations

import argparse
import csv
import resource
import time
from pathlib import Path

import numpy as np
import timm
import torch
from PIL import Image

from attnaudit.capture import capture
from attnaudit.kernel import spectrum
from attnaudit.sources.data import data_file, data_weights
from attnaudit.sources.images import find_images
from attnaudit.sources.weights import fit_weights, read_weights

MODEL = "deit_tiny_patch16_224"
BATCH = 1800


def keys_like_trained_ones(heads: int, tokens: int, device: str) -> torch.Tensor:
    """A mean, and a covariance that decays over one and a half orders of magnitude, as keys of trained heads have."""
    generator = torch.Generator().manual_seed(0)
    sizes = torch.logspace(0.3, -1.2, 64)
    centre = torch.randn(heads, 1, 64, generator=generator)
    return (torch.randn(heads, tokens, 64, generator=generator) * sizes + centre).to(device)


def accuracy(device: str) -> None:
    model = timm.create_model(MODEL, img_size=1024).eval()
    weights, images = data_weights(MODEL), data_file("imagenet_val")
    if weights is not None:
        trained = timm.create_model(MODEL)
        fit_weights(trained, read_weights(weights), weights, MODEL)
        state = trained.state_dict()
        grid = state["pos_embed"][:, 1:].transpose(1, 2).unflatten(-1, (14, 14))
        grown = torch.nn.functional.interpolate(grid, size=(64, 64), mode="bicubic").flatten(2).transpose(1, 2)
        model.load_state_dict({**state, "pos_embed": torch.cat([state["pos_embed"][:, :1], grown], dim=1)})
    image = torch.randn(1, 3, 1024, 1024, generator=torch.Generator().manual_seed(0))
    if images is not None:
        first = Image.open(find_images(images)[0]).convert("RGB").resize((1024, 1024))
        image = (torch.from_numpy(np.array(first)).permute(2, 0, 1)[None] / 255 - 0.45) / 0.225
    layers = capture(model.to(device), image.to(device)).layers
    print(f"{MODEL} at 1024 x 1024, weights {'trained' if weights else 'random'}, {layers[0].tokens} tokens, {device}")
    for number in (0, 5, 11):
        key, scale = layers[number].key[:1], layers[number].scale[:1]
        dense, dense_time = timed(lambda k=key, s=scale: spectrum(k, scale=s, backend="dense"), device)
        free, free_time = timed(lambda k=key, s=scale: spectrum(k, scale=s, backend="matrix-free"), device)
        error = ((free.eigenvalues - dense.eigenvalues) / dense.eigenvalues).abs().max().item()
        overlap = (free.eigenvectors.mT @ dense.eigenvectors).square().sum().item() / 64
        fall = (dense.eigenvalues[0, -1] / dense.eigenvalues[0, 0]).item()
        print(
            f"  layer {number:>2}: eigenvalues within {error:.1e}, overlap 1 - {1 - overlap:.1e}, residual "
            f"{free.residual.item():.1e}; μ64/μ1 {fall:.1e}; dense ({dense.solvers[0]}) {dense_time:.1f} s, "
            f"matrix-free {free_time:.1f} s"
        )


def timed(work, device: str):  # noqa: ANN001, ANN201
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    wait()
    begin = time.perf_counter()
    result = work()
    wait()
    return result, time.perf_counter() - begin


def peak(device: str) -> float:
    """GiB: what torch allocated on a GPU since the last reset, or the most this process ever had."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def growth(device: str, largest: int, most_heads: int) -> list[tuple[str, int, float, float]]:
    spectrum(keys_like_trained_ones(2, 197, device))  # wakes the libraries
    rows = []
    for tokens in [197] + [2**p for p in range(9, 18) if 2**p <= largest]:
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        keys = keys_like_trained_ones(1, tokens, device)
        found, spent = timed(lambda k=keys: spectrum(k), device)
        rows.append(("tokens", tokens, spent, peak(device)))
        solved = f"{found.solvers[0]}, residual {found.residual.item():.0e}"
        print(f"  1 head of {tokens:>6} tokens: {spent:8.3f} s, {peak(device):6.2f} GiB, {solved}")
        del keys, found
    for heads in [10**p for p in range(2, 6) if 10**p <= most_heads]:
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        keys = keys_like_trained_ones(min(heads, BATCH), 197, device)

        def work(keys=keys, heads=heads) -> None:  # noqa: ANN001
            for first in range(0, heads, BATCH):
                spectrum(keys[: min(BATCH, heads - first)])

        _, spent = timed(work, device)
        rows.append(("heads", heads, spent, peak(device)))
        each = f"{spent / heads * 1e6:.0f} µs per head"
        print(f"  {heads:>6} heads of 197 tokens: {spent:8.3f} s ({each}), {peak(device):6.2f} GiB")
    return rows


def slopes(rows: list[tuple[str, int, float, float]]) -> None:
    for kind in ("tokens", "heads"):
        chosen = [row for row in rows if row[0] == kind]
        upper = chosen[-4:] if kind == "tokens" else chosen
        size, spent, memory = (np.log([row[k] for row in upper]) for k in (1, 2, 3))
        powers = [np.polyfit(size, values, 1)[0] for values in (spent, memory)]
        span = f"{upper[0][1]:,} to {upper[-1][1]:,}"
        print(f"  against {kind} ({span}): time ~ n^{powers[0]:.2f}, memory ~ n^{powers[1]:.2f}")


def draw(rows: list[tuple[str, int, float, float]], out: Path, device: str) -> None:
    import matplotlib.pyplot as plt

    out.mkdir(parents=True, exist_ok=True)
    with (out / "growth.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("against", "number", "seconds", "GiB"), *rows])
    figure, axes = plt.subplots(2, 2, figsize=(7, 5), sharex="col", constrained_layout=True)
    for column, kind in enumerate(("tokens", "heads")):
        chosen = np.array([row[1:] for row in rows if row[0] == kind])
        for line, (index, label) in enumerate(((1, "seconds"), (2, "peak GiB"))):
            axes[line, column].loglog(chosen[:, 0], chosen[:, index], "o-", color="#0072B2", markersize=4)
            axes[line, column].set_ylabel(f"{label} (log)")
            axes[line, column].grid(alpha=0.3, which="both", linewidth=0.4)
        axes[1, column].set_xlabel(f"{kind} (log)")
    axes[0, 0].set_title("one head, d = 64")
    axes[0, 1].set_title("heads of 197 tokens")
    figure.suptitle(f"Spectrum of the keys, {torch.cuda.get_device_name() if device == 'cuda' else 'CPU, one thread'}")
    figure.savefig(out / "growth.svg")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--accuracy", action="store_true")
    parser.add_argument("--largest", type=int, default=8192)
    parser.add_argument("--heads", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.accuracy:
        accuracy(options.device)
    measured = growth(options.device, options.largest, options.heads)
    slopes(measured)
    if options.out is not None:
        draw(measured, options.out, options.device)
