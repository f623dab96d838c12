"""The run folder of a training: opened, or resumed, and filled with weights, card, history and summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from attnaudit._version import __version__
from attnaudit.attention import diagnosing
from attnaudit.capture.capture import evaluating
from attnaudit.errors import AttnAuditError, RunFolderError
from attnaudit.numerics.digest import content_digest, digest
from attnaudit.records import json_file
from attnaudit.records.card import CARD
from attnaudit.records.files import write_whole
from attnaudit.records.parts import check_part
from attnaudit.records.recipe import AnyRecipe, Recipe
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.schema import SCHEMA
from attnaudit.records.training import HISTORIES, HISTORY, TrainingIdentity
from attnaudit.records.versions import installed_versions
from attnaudit.sources.trained_models import WEIGHTS
from attnaudit.training.batching import Layout
from attnaudit.training.distributed import on_all_ranks
from attnaudit.training.tasks import Task
from attnaudit.training.trainer import CHECKPOINT, Trainer

AVERAGE = "average.safetensors"
#: Parts of a recipe that may differ between trainings that are compared.
_NOT_COMPARED = ("name", "about", "task", "model", "monitor")


@dataclass(frozen=True)
class TrainingResult:
    """A finished training: its folder, a record per epoch, and a sentence on the last of them."""

    path: Path
    recipe: Recipe
    seed: int
    history: tuple[Mapping[str, float], ...]
    details: Mapping[str, Any]
    sentence: str

    @property
    def facts(self) -> dict[str, Any]:
        """The numbers of the last epoch, with the settings and details of the training."""
        settings = {"recipe": self.recipe.name, "seed": self.seed, "epochs": self.recipe.epochs}
        return {**settings, **self.details, **self.history[-1]}

    def __repr__(self) -> str:
        return f"TrainingResult({self.recipe.name}, seed {self.seed}: {self.sentence})"


@contextmanager
def open_training_folder(out: Path, task: Task, layout: Layout) -> Iterator[RunFolder]:
    """The folder of a training, with its `run.json`. All ranks must call this; the main rank writes.

    A new folder is removed again if the training fails before its first checkpoint.

    Raises:
        RunFolderError: it cannot be written, holds something else, or is being written by another process.
    """
    folder = RunFolder(out)
    # Each rank monitors its share of the inputs: with another number, a curve would change its inputs halfway.
    ranks = layout.ranks.count if task.recipe.monitored_inputs > 0 else None
    identity = json_file.plain(TrainingIdentity(task.recipe, layout.seed, tuple(task.fingerprints), ranks))
    about = {
        "attnaudit": __version__,
        "versions": installed_versions(),
        "steps_per_epoch": layout.steps,
        "test_examples": len(task.test),
    }
    with ExitStack() as held:

        def opened() -> bool:
            if not layout.ranks.is_main:
                return False
            held.enter_context(folder.locked())
            return folder.open(identity, about)

        new = on_all_ranks(opened)
        try:
            yield folder
        except AttnAuditError:
            if new and not (out / CHECKPOINT).exists():
                folder.discard_if_empty()
            raise


def check_measurements(folder: RunFolder, step: int) -> None:
    """Check what the monitor measured up to a step, before a training goes on from there.

    Raises:
        RunFolderError: a part is missing or damaged; it could only be measured again by training again.
    """
    steps, parts = folder.header().get("steps", {}), folder.parts.files()
    for key in (key for measured, key in steps.items() if int(measured) <= step):
        try:
            check_part(parts[key], SCHEMA)
        except (KeyError, RunFolderError) as error:
            what = f"{parts[key]} is damaged" if key in parts else f"The part {key} of {folder.path} is missing"
            raise RunFolderError(
                f"{what}, and was measured before the checkpoint: delete {CHECKPOINT} to train again, or give --out "
                "another folder."
            ) from error


def write_history(folder: Path, recipe: AnyRecipe, history: Sequence[Mapping[str, Any]]) -> None:
    """Write a record per finished epoch; also before the end, for readers of a running training."""
    epoch, kind = HISTORIES[type(recipe)]
    json_file.write(folder / HISTORY, kind(tuple(epoch(**record) for record in history)))


def write_result(result: TrainingResult, folder: RunFolder, task: Task, trainer: Trainer) -> None:
    """Write weights first and the summary last: a folder with a summary is complete."""
    weights = _tensors(trainer.model)
    write_whole(folder.path / WEIGHTS, weights)
    if trainer.average is not None:
        write_whole(folder.path / AVERAGE, _tensors(trainer.average))
    facts = {**result.facts, "attnaudit": __version__, "weights_digest": content_digest([weights])}
    json_file.write(folder.path / CARD, task.card(facts))
    folder.write_summary({"training": result.facts})


def _tensors(model: nn.Module) -> bytes:
    content: bytes = save({name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()})
    return content


def comparison_key(recipe: Recipe, data: Sequence[str]) -> str:
    """A hash of everything but model and seed that decides a training: trainings with the same one can be compared."""
    settings = {name: value for name, value in json_file.plain(recipe).items() if name not in _NOT_COMPARED}
    return digest(settings, list(data))


@torch.no_grad()
def attention_statistics(model: nn.Module, inputs: Tensor) -> dict[str, dict[str, float]]:
    """Entropy, attention of tokens to themselves and, for RPC-Attention, the share of S and the residual, by layer.

    For RPC-Attention these are of the last iteration. Softmax attention is timm's own and is not observed.
    """
    with evaluating(model), diagnosing(model) as layers:
        model(inputs)
    last = {name: asdict(passes[-1]) for name, passes in layers.items() if passes}
    return {
        name: {quantity: float(values.mean()) for quantity, values in seen.items() if values is not None}
        for name, seen in last.items()
    }
