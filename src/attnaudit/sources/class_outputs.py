"""Match the outputs of a model to the classes of a data set."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from jaxtyping import Int64
from torch import Tensor

from attnaudit.errors import InputError
from attnaudit.sources.labelled import LabelledImages
from attnaudit.sources.timm_library import timm_data

_IMAGENET = 1000
_WORDNET = re.compile(r"n\d{8}")
#: How many classes of a model an error names.
_SHOWN = 3


def outputs_of(
    data: LabelledImages,
    outputs: int,
    model: str,
    classes: int | None = None,
    labels: Sequence[str] | None = None,
) -> Int64[Tensor, "classes"]:
    """The index of the model's output for every class of the data.

    Where both have names, the names decide. Otherwise folders may be named by WordNet id, as in ImageNet and in
    ImageNet-A, -R and -O with their 200 classes, or by class number, or the data has as many classes as the model.

    Args:
        data: images with labels.
        outputs: the number of outputs of the model.
        model: the name of the model.
        classes: the number of classes of the data, if its labels do not show it.
        labels: the names of the model's outputs, if they are known.

    Raises:
        InputError: data and model do not match.
    """
    names, classes = data.names or (), classes or data.classes
    imagenet = outputs == _IMAGENET and _are_wordnet(names)
    if labels and len(labels) <= outputs and _comparable(names, labels, imagenet):
        return _named_places(data, names, model, labels)
    if imagenet:
        return _imagenet_places(data, names)
    if _are_numbers(names):
        indices = torch.tensor([int(name) for name in names])
        if int(indices.max()) < outputs:
            return indices
        raise InputError(
            f"The class {int(indices.max())} of {data.path} is not one of the {outputs} classes of {model}, which are "
            f"numbered from 0 to {outputs - 1}: name folders by class number."
        )
    if classes == outputs:
        return torch.arange(outputs)
    raise InputError(
        f"{model} has {outputs} classes, but {data.path} has {classes}: give images of the model's classes, in "
        "folders named by WordNet id (ImageNet models) or by class number, or one folder for every class."
    )


def may_be_same(names: Sequence[str] | None, labels: Sequence[str] | None) -> bool:
    """Whether these may be names of the same classes in the same order: they are, or cannot be compared."""
    if not names or not labels or _are_numbers(names) != _are_numbers(labels):
        return True
    return list(names) == list(labels)


def _are_numbers(names: Sequence[str]) -> bool:
    return bool(names) and all(name.isdecimal() for name in names)


def _are_wordnet(names: Sequence[str]) -> bool:
    return bool(names) and all(_WORDNET.fullmatch(name) for name in names)


def _comparable(names: Sequence[str], labels: Sequence[str], imagenet: bool) -> bool:
    """Whether both are names of one kind: numbers stand for classes by their place, WordNet ids for words."""
    if not names or _are_numbers(names) != _are_numbers(labels):
        return False
    return not imagenet or _are_wordnet(labels)


def _named_places(
    data: LabelledImages, names: Sequence[str], model: str, labels: Sequence[str]
) -> Int64[Tensor, "classes"]:
    if _are_numbers(labels):  # 007 is 7
        names, labels = ([str(int(name)) for name in own] for own in (names, labels))
    if list(names) == list(labels):  # even where two classes share a name
        return torch.arange(len(labels))
    index = {label: place for place, label in enumerate(labels) if labels.count(label) == 1}
    if unknown := [name for name in names if name not in index]:
        more = ", …" if len(labels) > _SHOWN else ""
        raise InputError(
            f"The class {unknown[0]!r} of {data.path} is not one of the classes of {model} "
            f"({', '.join(labels[:_SHOWN])}{more}): name classes as the model does, or by their number there."
        )
    return torch.tensor([index[name] for name in names])


def _imagenet_places(data: LabelledImages, names: Sequence[str]) -> Int64[Tensor, "classes"]:
    data_module = timm_data()
    index = {name: number for number, name in enumerate(data_module.ImageNetInfo().label_names())}
    if unknown := [name for name in names if name not in index]:
        raise InputError(f"{data.path}/{unknown[0]} is not one of ImageNet's 1,000 classes.")
    return torch.tensor([index[name] for name in names])
