"""Training by a recipe."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from attnaudit import defaults
from attnaudit.errors import InputError, UsageError
from attnaudit.numerics.devices import device_name
from attnaudit.records.engine import Progress
from attnaudit.records.ranges import check_seed, check_whole
from attnaudit.report.progress import shown_progress
from attnaudit.sources.data import VARIABLE, data_file
from attnaudit.training.cuda_graph import check_recordable
from attnaudit.training.distributed import DeviceSettings, joined_processes
from attnaudit.training.loop import train as train_by_recipe
from attnaudit.training.recipe_file import read_recipe
from attnaudit.training.tasks import read_data
from attnaudit.training.training_folder import TrainingResult

_log = logging.getLogger(__name__)
#: How a training does less.
_LESS = "--epochs N or --limit N does less"


def train(
    recipe: str,
    data: str | Path | None = None,
    *,
    epochs: int | None = None,
    change: Sequence[str] | None = None,
    limit: int | None = None,
    seed: int = defaults.SEED,
    device: str = defaults.DEVICE,
    compiled: bool = False,
    graph: bool = False,
    workers: int = defaults.READERS,
    out: str | Path | None = None,
    progress: Progress | bool = True,
) -> TrainingResult:
    """Train a vision transformer or a language model by a recipe; after an interruption the same call resumes.

    In a program that `torchrun` starts, the processes share the training, and the first of them writes.

    Args:
        recipe: a name, see `attnaudit ls recipes`, or a .yaml file.
        data: of images a folder with train*.parquet and test*.parquet (columns img, label), or with train/ and val/ of
            class folders; of pictures with masks the same Parquet files with columns image and mask, or ADE20K's
            images/ and annotations/; of text a folder with train*.txt and test*.txt, WikiText's, or a file. By default
            the recipe's folder in the data folder.
        epochs: instead of the recipe's.
        change: settings to change, such as `"model.depth=6"`.
        limit: images or lines per half; all if None.
        seed: of every random choice.
        device: `auto`, `cpu` or `cuda`.
        compiled: compile the model with torch.compile.
        graph: record a step as a CUDA graph and replay it, which is faster for small models.
        workers: processes that read images, with timm's augmentation.
        out: the run folder; by default `attnaudit-runs/RECIPE-SEED`.
        progress: a function that is told of every step; True for a bar, False for none.

    Raises:
        InputError: there is no data, or it cannot be learned from.
    """
    check_whole(1, epochs=epochs, limit=limit)
    check_whole(0, workers=workers)
    check_seed(seed)
    if isinstance(change, str):
        raise UsageError(f"change must be a list of settings, as in [{change!r}], got {change!r} alone.")
    chosen = read_recipe(recipe, [*(change or ()), *([] if epochs is None else [f"epochs={epochs}"])])
    with joined_processes(device_name(device)) as (ranks, own_device):
        settings = DeviceSettings(own_device, workers, compiled, graph, ranks=ranks)
        if graph:
            check_recordable(chosen, settings)
        place = Path(data) if data is not None else data_file(chosen.data)
        if place is None:
            raise InputError(f"No training data was found: give --data DIR, or put {chosen.data}/ into {VARIABLE}.")
        with shown_progress(progress if ranks.is_main else False, "training", _LESS) as told:
            return train_by_recipe(
                chosen,
                read_data(chosen, place, limit),
                Path(out) if out is not None else Path(defaults.RUNS) / f"{chosen.name}-{seed}",
                seed=seed,
                device_settings=settings,
                progress=told,
                tell=_log.info if ranks.is_main else _ignore,
            )


def _ignore(line: str) -> None:
    pass
