"""What networks make of a few test pictures: input, truth and predictions, beside each other. Not to be published."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from attnaudit.robustness.corrupted_folder import CLEAN_FILE
from attnaudit.robustness.corruptions import corrupted_place
from attnaudit.robustness.pixels import PixelModel
from attnaudit.sources.model import load_model, parse_model
from attnaudit.sources.segmented import UNLABELLED, SegmentedImages, read_segmented

_PICTURES, _HEAD = 3, 12
_SHOWN = ("fog", 3)


def draw_masks(networks: Mapping[str, Path], data: Path, corrupted: Path, file: Path) -> None:
    """A row for each of a few pictures, clean and in fog if the corrupted set has it; a column for each network."""
    models = {name: PixelModel(load_model(parse_model(str(folder)))) for name, folder in networks.items()}
    first = next(iter(models.values()))
    chosen = [read_segmented(next(data.glob("test*.parquet")), first.outputs).evenly_spaced(_PICTURES)]
    if (corrupted / CLEAN_FILE).exists() and (corrupted / _SHOWN[0] / f"{_SHOWN[1]}.parquet").exists():
        chosen.append(read_segmented(corrupted_place(corrupted, *_SHOWN), first.outputs).evenly_spaced(_PICTURES))
    rows = [row for pictures in chosen for row in _rows(models, pictures, first.size)]
    columns = ["input", "truth", *models]
    height, width = first.size
    sheet = Image.new("RGB", (width * len(columns), _HEAD + height * len(rows)), "white")
    for place, name in enumerate(columns):
        ImageDraw.Draw(sheet).text((place * width + 2, 0), name, fill="black")
        for number, row in enumerate(rows):
            sheet.paste(Image.fromarray(row[place]), (place * width, _HEAD + number * height))
    sheet.save(file)


def _rows(
    models: Mapping[str, PixelModel], pictures: SegmentedImages, size: tuple[int, int]
) -> list[list[NDArray[np.uint8]]]:
    pixels, masks = pictures.pixels(*size), pictures.mask_pixels(*size)
    colours = _palette(pictures.classes)
    with torch.no_grad():
        said = [model(pixels.float() / 255).argmax(dim=-1).numpy() for model in models.values()]
    return [
        [pixels[place].permute(1, 2, 0).numpy(), colours[masks[place].numpy()], *(colours[own[place]] for own in said)]
        for place in range(len(pictures))
    ]


def _palette(classes: int) -> NDArray[np.uint8]:
    """Colours of even hue for the classes, black for what has none."""
    colours = np.zeros((UNLABELLED + 1, 3), dtype=np.uint8)
    for number in range(classes):
        hue = Image.new("HSV", (1, 1), (number * 256 // classes, 160 + 80 * (number % 2), 255 - 70 * (number % 3)))
        colours[number] = hue.convert("RGB").getpixel((0, 0))
    return colours
