"""Tiny entries of the atlas whose networks are ours: one reads tensors, the other images."""

import hashlib
import json

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from attnaudit.sources.atlas.building import build_from
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile
from attnaudit.sources.model import Sample
from attnaudit.sources.preprocess import ImagePreparation

WIDTH, HEADS, LENGTHS = 8, 2, (12, 17, 23)
IMAGE = ImagePreparation(32, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), crop=0.8)


class Attention(nn.Module):
    """Self-attention alone, which is all that an audit looks at."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv = heads, nn.Linear(width, 3 * width)

    def forward(self, rows):
        batch, tokens, width = rows.shape
        parts = self.qkv(rows).view(batch, tokens, 3, self.heads, width // self.heads)
        return F.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4)).transpose(1, 2).reshape(rows.shape)


class Patches(nn.Module):
    """The same over patches of an image."""

    def __init__(self, width, heads):
        super().__init__()
        self.patches, self.attention = nn.Conv2d(3, width, 4, 4), Attention(width, heads)

    def forward(self, images):
        return self.attention(self.patches(images).flatten(2).transpose(1, 2))


def samples(folder):
    """Series of different lengths; the first two belong together."""
    source = torch.Generator().manual_seed(0)
    return [
        Sample(f"series-{place}", {"rows": torch.randn(1, length, WIDTH, generator=source)}, "pair" * (place < 2))
        for place, length in enumerate(LENGTHS)
    ]


def built_entry(folder, name="series", network=Attention, **reads):
    """An entry whose one file of weights is in a folder."""
    torch.manual_seed(1)
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.bin"
    save_file(network(WIDTH, HEADS).state_dict(), file)

    def convert(files, target):
        (target / "config.json").write_text(json.dumps({"width": WIDTH, "heads": HEADS}))
        (target / "model.safetensors").write_bytes(files[file.name].read_bytes())
        return ("made for a test",)

    known = KnownFile(file.name, hashlib.sha256(file.read_bytes()).hexdigest())
    build = build_from(lambda config: network(config["width"], config["heads"]))
    return AtlasModel(
        name=name, field="tables", architecture="attention", licence="MIT", megabytes=1, files=(known,),
        convert=convert, check=lambda folder: build(folder, None), build=build, **reads,
    )  # fmt: skip
