"""Pictures of two halves, dark and bright, with masks that say which is which."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

#: Height and width.
SHAPE = (32, 48)


def picture(place, shape=SHAPE):
    """The bright half ends at a column that depends on the picture; two rows have no class."""
    generator = np.random.default_rng(place)
    height, width = shape
    edge = width // 4 + (place * 7) % (width // 2)
    pixels = generator.integers(0, 80, (height, width, 3), dtype=np.uint8)
    pixels[:, :edge] += 150
    mask = np.ones(shape, dtype=np.uint8)
    mask[:, :edge] = 0
    mask[:2] = 255
    return pixels, mask


def encoded(array, kind="PNG"):
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, kind)
    return buffer.getvalue()


def write_masks(path, count, *, first=0, unlabelled=2):
    """A Parquet file as CamVid's: two classes, and the number after them for pixels without one."""
    pictures = [picture(first + place) for place in range(count)]
    masks = [np.where(mask == 255, unlabelled, mask).astype(np.uint8) for _, mask in pictures]
    columns = {"name": [f"{place}.png" for place in range(count)], "image": [encoded(pixels) for pixels, _ in pictures]}
    pq.write_table(pa.table({**columns, "mask": [encoded(mask) for mask in masks]}), path)
    return path


def write_ade20k(folder, counts):
    """ADE20K's layout: 0 is unlabelled, and classes begin with 1."""
    for half, count in counts.items():
        for place in range(count):
            pixels, mask = picture(place)
            for kind, array, name in (("images", pixels, "jpg"), ("annotations", mask, "png")):
                file = folder / kind / half / f"ADE_{place}.{name}"
                file.parent.mkdir(parents=True, exist_ok=True)
                moved = np.where(array == 255, 0, array + 1).astype(np.uint8) if kind == "annotations" else array
                Image.fromarray(moved).save(file)
    return folder


def without_labels(path, places):
    """The file, with masks at these places that name no class."""
    table = pq.read_table(path)
    masks = [encoded(np.full(SHAPE, 255, np.uint8)) if place in places else mask.as_py()
             for place, mask in enumerate(table["mask"])]  # fmt: skip
    pq.write_table(table.set_column(table.schema.get_field_index("mask"), "mask", pa.array(masks)), path)
