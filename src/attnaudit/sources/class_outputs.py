"""Which outputs of a model belong to the classes of a data set."""

from __future__ import annotations

import re

import torch
from jaxtyping import Int64
from torch import Tensor

from attnaudit.errors import InputError
from attnaudit.extras import optional
from attnaudit.sources.labelled import LabelledImages

_IMAGENET = 1000
_WORDNET = re.compile(r"n\d{8}")


def outputs_of(data: LabelledImages, outputs: int, model: str, classes: int | None = None) -> Int64[Tensor, "classes"]:
    """The model's output for every class of the data.

    Folders may be named by WordNet id, as those of ImageNet and of ImageNet-A, -R and -O are, whose 200 classes are
    thus read off the data itself; or by class number. Otherwise the data must have as many classes as the model.

    Args:
        data: images with labels.
        outputs: how many the model has.
        model: its name.
        classes: how many the data has, where its labels do not show it.

    Raises:
        InputError: they do not match.
    """
    names, classes = data.names or (), classes or data.classes
    if names and outputs == _IMAGENET and all(_WORDNET.fullmatch(name) for name in names):
        return _imagenet_places(data, names)
    if names and all(name.isdecimal() for name in names):
        places = torch.tensor([int(name) for name in names])
        if int(places.max()) < outputs:
            return places
    elif classes == outputs:
        return torch.arange(outputs)
    raise InputError(
        f"{model} tells {outputs} classes apart, but {data.place} has {classes}: give images of the model's own "
        "classes, in folders named by WordNet id (ImageNet models), by class number, or one for every class."
    )


def _imagenet_places(data: LabelledImages, names: tuple[str, ...]) -> Int64[Tensor, "classes"]:
    data_module = optional("timm.data", "timm", "Reading WordNet ids")
    place = {name: number for number, name in enumerate(data_module.ImageNetInfo().label_names())}
    if unknown := [name for name in names if name not in place]:
        raise InputError(f"{data.place}/{unknown[0]} is none of ImageNet's 1,000 classes.")
    return torch.tensor([place[name] for name in names])
