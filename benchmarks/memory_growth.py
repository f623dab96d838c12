"""Does the memory of an audit grow with the number of images? Peak of 100 and of 1,000, each in a fresh process."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import attnaudit
from attnaudit.measures import REFERENCES

SIDE = 32  # pixels: what is measured is the audit, not the reading of large images


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="test_vit")
    parser.add_argument("--images", type=int, nargs=2, default=(100, 1000))
    parser.add_argument("--references", nargs="*", default=tuple(REFERENCES))
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure is not None:
        print(*audited(arguments.measure, arguments.model, arguments.references))
        return
    peaks = []
    for count in arguments.images:
        with tempfile.TemporaryDirectory() as folder:
            draw(Path(folder), count)
            command = [sys.executable, __file__, "--measure", folder, "--model", arguments.model, "--references"]
            answer = subprocess.run(
                [*command, *arguments.references], capture_output=True, text=True, check=True
            ).stdout
        peak, rows = map(int, answer.split())
        peaks.append(peak)
        print(f"{count:>5} images: {rows:>9,} rows of evidence, peak {peak / 1024:,.0f} MiB", flush=True)
    print(f"ratio: {peaks[1] / peaks[0]:.3f}")


def draw(folder: Path, count: int) -> None:
    generator = np.random.default_rng(0)
    for number in range(count):
        pixels = generator.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:04}.png")


def audited(images: Path, model: str, references: list[str]) -> tuple[int, int]:
    """Peak resident memory of this process in KiB, with verdicts and all, and the number of rows."""
    run = attnaudit.audit(model, images, random_weights=True, references=references)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(run.rows)


if __name__ == "__main__":
    main()
