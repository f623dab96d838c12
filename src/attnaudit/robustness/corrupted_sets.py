"""Write corrupted images to files, in several processes, for machines without the package that corrupts them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from attnaudit.records import json_file
from attnaudit.records.engine import Progress, starting_processes, worker_pool
from attnaudit.records.evaluation import Condition
from attnaudit.records.files import make_folder, write_whole
from attnaudit.records.identity import begins
from attnaudit.robustness.corrupted_folder import CLEAN_FILE, IDENTITY_FILE
from attnaudit.robustness.corruptions import check_large_enough, corrupted, version
from attnaudit.robustness.examples import Examples
from attnaudit.robustness.pixels import PixelModel
from attnaudit.sources.encoded_images import NAMES, encoded_without_loss


def write_corrupted_sets(
    model: PixelModel,
    examples: Examples,
    conditions: Sequence[Condition],
    out: Path,
    *,
    seed: int = 0,
    workers: int = 1,
    progress: Progress = lambda done, total, label: None,
) -> None:
    """Write the preprocessed images: `clean.parquet`, and `<corruption>/<severity>.parquet` for each condition.

    Existing files are kept if they have all images, and a folder with other images is left alone. The images do not
    depend on the number of workers. They are stored as WebP without loss, because a lossy format would corrupt them
    further.

    Raises:
        InputError: images of this size cannot be corrupted.
        RunFolderError: the folder has other content, or cannot be written.
    """
    check_large_enough(*model.size)
    file, identity = out / IDENTITY_FILE, _identity(model, examples, seed)
    if begins(file, identity):
        make_folder(out)
        json_file.write(file, {"identity": identity})
    images = examples.selected
    clean, truth, names = examples.clean(model), images.columns(*model.size), images.names
    if not _is_whole(out / CLEAN_FILE, len(clean)):
        write_whole(out / CLEAN_FILE, _parquet(clean, truth, names))
    missing = [condition for condition in conditions if not _is_whole(_file(out, condition), len(clean))]
    done = len(conditions) - len(missing)
    progress(done, len(conditions), "corrupting")
    for condition, content in _made(clean, missing, (truth, names, examples.indices, seed), workers):
        make_folder(_file(out, condition).parent)
        write_whole(_file(out, condition), content)
        done += 1
        progress(done, len(conditions), "corrupting")


def _identity(model: PixelModel, examples: Examples, seed: int) -> dict[str, Any]:
    """What the images depend on, besides corruption and severity."""
    return {
        "data": examples.data.fingerprint,
        "images": list(examples.indices),
        "classes": examples.classes or examples.data.classes,
        "names of classes": None if examples.data.names is None else list(examples.data.names),
        "seed": seed,
        "size": list(model.size),
        "preprocessing": model.preprocessing_digest,
        "corruptions": version(),
        **({"preprocessed": True} if examples.preprocessed else {}),
    }


_Truth = dict[str, list[Any]]
_About = tuple[_Truth, tuple[str, ...] | None, Sequence[int], int]


def _made(
    clean: Tensor, conditions: Sequence[Condition], about: _About, workers: int
) -> Iterator[tuple[Condition, bytes]]:
    if workers == 1:
        yield from ((condition, _content(clean.numpy(), condition, about)) for condition in conditions)
        return
    with worker_pool(workers) as pool:
        with starting_processes():
            running = {pool.submit(_content, clean.numpy(), condition, about): condition for condition in conditions}
        for finished in as_completed(running):
            yield running[finished], finished.result()


def _content(clean: NDArray[np.uint8], condition: Condition, about: _About) -> bytes:
    truth, names, places, seed = about
    changed = corrupted(torch.from_numpy(clean), condition.name, round(condition.strength), places, seed)
    return _parquet(changed, truth, names)


def _file(out: Path, condition: Condition) -> Path:
    return out / condition.name / f"{round(condition.strength)}.parquet"


def _is_whole(file: Path, images: int) -> bool:
    """Whether a file is there and has so many images: one that is cut off is made again."""
    try:
        return bool(pq.read_metadata(file).num_rows == images)
    except (OSError, pa.ArrowException):
        return False


def _parquet(pixels: Tensor, truth: _Truth, names: tuple[str, ...] | None) -> bytes:
    pictures = [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in pixels]
    encoded = pa.array([encoded_without_loss(picture, "WEBP") for picture in pictures], pa.binary())
    table = pa.table({"img": encoded, **truth})
    if names is not None:
        table = table.replace_schema_metadata({NAMES: "\n".join(names)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content
