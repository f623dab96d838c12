"""What the networks of the robustness experiment attend with: the temperature of a control, the diagnosis of all."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path

import torch
from benchmarks.robustness_jobs import Job, finished
from PIL import Image
from torch import Tensor, nn

from attnaudit.attention import Diagnosis, diagnosing, matching_temperatures
from attnaudit.evidence.folder import write_whole
from attnaudit.protocol import Protocol
from attnaudit.sources.labelled import training_and_test
from attnaudit.sources.model import load_model, parse_model

#: So many of the training set are looked at.
PICTURES = 512
ATTENTION = "attention.json"


@cache
def training_pictures(data: Path) -> list[Image.Image]:
    pictures = training_and_test(data)[0].first(PICTURES)
    return [pictures.picture(place) for place in range(len(pictures))]


def network_and_batch(folder: Path, data: Path) -> tuple[nn.Module, Tensor]:
    """A trained network, and the first training pictures as it reads them."""
    model = load_model(parse_model(str(folder)))
    assert model.preprocess is not None
    prepare = model.preprocess(Protocol.EXACT)
    return model.module, torch.stack([prepare(picture) for picture in training_pictures(data)])


def temperature(pursuing: Path, data: Path) -> float:
    """At which symmetric attention is as sharp as the RPC-Attention of this network; to three digits."""
    network, batch = network_and_batch(pursuing, data)
    (found,) = matching_temperatures(network, [batch]).values()
    return float(f"{found:.3g}")


@torch.no_grad()
def attentions(trainings: Sequence[Job], arguments: argparse.Namespace) -> None:
    """Write what the layers of every network end up attending with: whether controls have what they are to share."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for training in filter(finished, trainings):
        network, batch = network_and_batch(training.folder, arguments.data)
        with diagnosing(network.to(arguments.device)) as layers:
            network(batch.to(arguments.device))
        found[training.folder.name] = {name: means(passes[-1]) for name, passes in layers.items()}
    write_whole(arguments.runs / ATTENTION, (json.dumps(found, indent=1) + "\n").encode())


def means(seen: Diagnosis) -> dict[str, float]:
    numbers = {field.name: getattr(seen, field.name) for field in fields(seen)}
    return {name: float(values.mean()) for name, values in numbers.items() if values is not None}
