"""A classifier of 32-pixel images as a source would load it, and a data set of such images on disk."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

from attnaudit.records import json_file
from attnaudit.records.architecture import Architecture
from attnaudit.records.card import CARD, ImageCard
from attnaudit.sources.labelled import read_labelled
from attnaudit.sources.model import LoadedModel
from attnaudit.sources.trained_models import WEIGHTS
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.sources.weights import fingerprint
from tests.robustness.problems import generator

MEAN, DEVIATION = torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1), torch.tensor([0.2, 0.25, 0.3]).view(3, 1, 1)
SIZE = 32


def preprocess(protocol):
    def apply(image):
        pixels = np.asarray(image.resize((SIZE, SIZE)), dtype=np.float32) / 255
        return (torch.from_numpy(pixels).permute(2, 0, 1) - MEAN) / DEVIATION

    return apply


def loaded(label="model", classes=2, network=None):
    """Class k is where the k-th half is the brighter one."""
    if network is None:
        network = nn.Sequential(nn.AvgPool2d((SIZE // classes, SIZE)), nn.Flatten(), nn.Linear(3 * classes, classes))
        with torch.no_grad():
            network[2].weight.copy_(torch.eye(classes).repeat(1, 3) * 4)
            network[2].bias.zero_()
    return LoadedModel(label, network.eval(), fingerprint(network), "made by a test", preprocess=preprocess)


def constant(label="constant"):
    """It says class 0 of every image."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIZE * SIZE, 2)).requires_grad_(False)
    network[1].weight.zero_()
    network[1].bias.copy_(torch.tensor([1.0, 0.0]))
    return loaded(label, network=network)


def pixels(count, classes=2, seed=0):
    own = generator(seed)
    labels = torch.arange(count) % classes
    images = torch.randint(60, 120, (count, SIZE, SIZE, 3), generator=own)
    for label in range(classes):
        rows = slice(label * SIZE // classes, (label + 1) * SIZE // classes)
        images[labels == label, rows] += torch.randint(0, 40, (int((labels == label).sum()), 1, 1, 1), generator=own)
    return images.to(torch.uint8).numpy(), labels.tolist()


def write_parquet(path, count=12, classes=2, seed=0):
    images, labels = pixels(count, classes, seed)
    rows = []
    for image in images:
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "PNG")
        rows.append({"bytes": buffer.getvalue(), "path": None})
    pq.write_table(pa.table({"img": rows, "label": labels}), path)
    return read_labelled(path)


def write_folders(folder, names, each=2):
    images, _ = pixels(len(names) * each, len(names))
    for place, image in enumerate(images):
        path = folder / names[place % len(names)] / f"{place}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return read_labelled(folder)


def write_model(folder, classes=2, facts=None, size=SIZE, labels=None, **settings):
    """The folder of a network of `attnaudit train`, untrained."""
    sizes = {"image_size": size, "patch_size": 16, "width": 24, "depth": 1, "heads": 2, "classes": classes}
    architecture = Architecture(**sizes, **settings)
    folder.mkdir(parents=True)
    save_file(build_vision_transformer(architecture, 0).state_dict(), folder / WEIGHTS)
    card = ImageCard(folder.name, architecture, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25), labels, facts or {})
    json_file.write(folder / CARD, card)
