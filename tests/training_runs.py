"""Folders of training runs with made-up evidence, as `attnaudit train` leaves them."""

import math

import pyarrow as pa

from attnaudit.records.architecture import Architecture
from attnaudit.records.json_file import plain, write
from attnaudit.records.notes import Notes
from attnaudit.records.parts import encode_part
from attnaudit.records.recipe import ImageMonitorSettings, ImageRecipe
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.schema import SCHEMA
from attnaudit.records.training import ImageEpoch, ImageHistory, TrainingIdentity

STEPS_PER_EPOCH = 5
ABOUT = {"attnaudit": "0", "versions": {}, "steps_per_epoch": STEPS_PER_EPOCH}
#: What a measure is at an epoch, before layer and head move it a little.
COURSE = {
    "projection_error_mae": lambda epoch: 8 * math.exp(-epoch / 40),
    "output_norm2": lambda epoch: 8.02 * math.exp(-epoch / 40),
    "phi_norm2": lambda epoch: 0.02 + 1000 * epoch * math.exp(-2 * epoch),
    "projection_error_rel_output": lambda epoch: 1 + 100 * epoch * math.exp(-2 * epoch),
    "projection_error_rel_phi": lambda epoch: 1e5 * (1 + epoch),
    "output_above_phi": lambda epoch: 1.0,
}


def write_training(
    path,
    *,
    name="study-vit-tiny",
    dim=64,
    epochs=(0, 1, 2, 10),
    batches=("train", "test"),
    layers=2,
    heads=3,
    lost=(),
    course=COURSE,
):
    """An unfinished run, a part per epoch; at the epochs in `lost` the numbers of the first head are missing."""
    folder = RunFolder(path)
    model = Architecture(heads=3, standardise=True)
    recipe = ImageRecipe(name, model=model, epochs=300, monitor=ImageMonitorSettings(images=4))
    folder.open(plain(TrainingIdentity(recipe, 0, ("same",), ranks=1)), ABOUT)
    for epoch in epochs:
        rows = [
            _row(batch, layer, head, measure, epoch, dim, epoch in lost and (layer, head) == (0, 0), course)
            for batch in batches
            for measure in course
            for layer in range(layers)
            for head in range(heads)
        ]
        rows.append(_row("train/0", 0, 0, "phi_norm2", epoch, dim, False) | {"value": 1e9})  # one image, no mean
        rows.append(_row(batches[0], 0, 0, "phi_norm2", epoch, dim, False) | {"value": 1e9, "reference": "gaussian"})
        add_part(path, f"{epoch:04}", pa.Table.from_pylist(rows, schema=SCHEMA))
    return path


def add_part(path, key, table):
    """Rows that the monitor of a training wrote."""
    folder = RunFolder(path)
    folder.parts.write(key, encode_part(key, table, Notes((), {}, ())))
    folder.extend_settings(parts=[*folder.header().get("parts", []), key])


def write_course(path, accuracies, *, seed=0, attention="softmax", options=None, data="same", examples=None, **model):
    """The folder of a training without a monitor, with the accuracy of each epoch on so many test examples."""
    architecture = Architecture(**{"depth": 2, "attention": attention, "attention_options": options or {}} | model)
    monitor = ImageMonitorSettings(images=0)
    recipe = ImageRecipe(f"{attention}-recipe", model=architecture, epochs=50, monitor=monitor)
    about = ABOUT | ({} if examples is None else {"test_examples": examples})
    RunFolder(path).open(plain(TrainingIdentity(recipe, seed, (data,))), about)
    history = [
        ImageEpoch(place + 1, STEPS_PER_EPOCH * (place + 1), 0.1, 1.0, 1.0, accuracy, 1.0)
        for place, accuracy in enumerate(accuracies)
    ]
    write(path / "history.json", ImageHistory(tuple(history)))
    return path


def _row(batch, layer, head, measure, epoch, dim, lost, course=COURSE):
    value = course[measure](epoch) * (1 + 0.1 * (layer - head)) * (1.5 if batch == "test" else 1)
    return {
        "model": "vit_tiny",
        "input": batch,
        "layer": layer,
        "head": head,
        "window": 0,
        "theory": "kpca",
        "reference": "observed",
        "repeat": 0,
        "measure": measure,
        "value": None if lost else value,
        "reason": "lost" if lost else None,
        "protocol": "exact",
        "tokens": 197,
        "dim": dim,
        "step": epoch * STEPS_PER_EPOCH,
    }
