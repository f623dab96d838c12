"""Match the outputs of a model to the classes of a data set."""

from __future__ import annotations

import re

import torch
from jaxtyping import Int64
from torch import Tensor

from attnaudit.errors import InputError
from attnaudit.sources.labelled import LabelledImages
from attnaudit.sources.timm_library import timm_data

_IMAGENET = 1000
_WORDNET = re.compile(r"n\d{8}")


def outputs_of(data: LabelledImages, outputs: int, model: str, classes: int | None = None) -> Int64[Tensor, "classes"]:
    """The index of the model's output for every class of the data.

    Folders may be named by WordNet id, as in ImageNet and in ImageNet-A, -R and -O with their 200 classes, or by class
    number. Otherwise the data must have as many classes as the model.

    Args:
        data: images with labels.
        outputs: the number of outputs of the model.
        model: the name of the model.
        classes: the number of classes of the data, if its labels do not show it.

    Raises:
        InputError: data and model do not match.
    """
    names, classes = data.names or (), classes or data.classes
    if names and outputs == _IMAGENET and all(_WORDNET.fullmatch(name) for name in names):
        return _imagenet_places(data, names)
    if names and all(name.isdecimal() for name in names):
        indices = torch.tensor([int(name) for name in names])
        if int(indices.max()) < outputs:
            return indices
    elif classes == outputs:
        return torch.arange(outputs)
    raise InputError(
        f"{model} has {outputs} classes, but {data.path} has {classes}: give images of the model's classes, in "
        "folders named by WordNet id (ImageNet models) or by class number, or one folder for every class."
    )


def _imagenet_places(data: LabelledImages, names: tuple[str, ...]) -> Int64[Tensor, "classes"]:
    data_module = timm_data()
    index = {name: number for number, name in enumerate(data_module.ImageNetInfo().label_names())}
    if unknown := [name for name in names if name not in index]:
        raise InputError(f"{data.path}/{unknown[0]} is not one of ImageNet's 1,000 classes.")
    return torch.tensor([index[name] for name in names])
