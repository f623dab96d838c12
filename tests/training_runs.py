"""Folders of training runs with made-up evidence, as `attnaudit train` leaves them."""

import json
import math

import pyarrow as pa

from attnaudit.records.notes import Notes
from attnaudit.records.run_folder import RunFolder, encoded
from attnaudit.records.schema import SCHEMA

STEPS_PER_EPOCH = 5
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
    model = {"heads": 3, "standardise": True, "attention": "softmax", "attention_layers": None, "attention_options": {}}
    recipe = {"name": name, "model": model, "epochs": 300, "monitor": {"images": 4}}
    folder.open({"recipe": recipe, "seed": 0}, {"attnaudit": "0", "steps_per_epoch": STEPS_PER_EPOCH})
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
        folder.write_part(f"{epoch:04}", encoded(pa.Table.from_pylist(rows, schema=SCHEMA), Notes((), {}, ())))
    return path


def write_course(path, accuracies, *, seed=0, attention="softmax", options=None, data="same", **model):
    """The folder of a training without a monitor, with the accuracy of each epoch."""
    path.mkdir(parents=True)
    architecture = {"depth": 2, "attention": attention, "attention_layers": None, "attention_options": options or {}}
    recipe = {"name": f"{attention}-recipe", "model": architecture | model, "epochs": 50, "monitor": {"images": 0}}
    run = {"identity": {"recipe": recipe, "seed": seed, "data": [data]}, "steps_per_epoch": STEPS_PER_EPOCH}
    (path / "run.json").write_text(json.dumps(run))
    history = [{"epoch": place + 1, "test_accuracy": accuracy} for place, accuracy in enumerate(accuracies)]
    (path / "history.json").write_text(json.dumps(history))
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
