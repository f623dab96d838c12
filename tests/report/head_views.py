"""Views of heads for synthetic runs."""

import io

import numpy as np
from PIL import Image

from attnaudit.records.head_views import FOLDER, HeadView, InputView, ViewsIdentity, table_of
from attnaudit.records.json_file import plain
from attnaudit.records.notes import Notes
from attnaudit.records.parts import encode_part
from attnaudit.records.quantised import QuantisedRows
from attnaudit.records.run_folder import RunFolder


def _rows(generator, rows, columns):
    return QuantisedRows.of(generator.uniform(0, 1, (rows, columns)))


def _head(layer, head, tokens, **more):
    generator = np.random.default_rng([layer, head])
    given = {
        "layer": layer,
        "head": head,
        "tokens": tokens,
        "windows": 1,
        "query_heads": 1,
        "causal": False,
        "grid": None,
        "attention": _rows(generator, 2, tokens),
        "one_query": 0,
        "block": _rows(generator, min(tokens, 24), min(tokens, 24)),
        "eigenvalues": (0.5, 0.25, 0.125),
        "bound": 0.75,
        "cosines": (0.5, 0.25),
        "columns": _rows(generator, 4, tokens),
        "problem": "",
    }
    return HeadView(**given | more)


def picture_view(name="picture", model="model", layers=2, heads=3, **more):
    """A 4 x 4 grid after a class token."""
    content = io.BytesIO()
    Image.new("RGB", (16, 16), (200, 120, 40)).save(content, "JPEG")
    own = [_head(layer, head, 17, grid=(4, 4), block=None, **more) for layer in range(layers) for head in range(heads)]
    return InputView(model, name, content.getvalue(), None, "", tuple(own))


def text_view(tokens, name="text", model="model", layers=2, heads=3, **more):
    """The tokens of a text."""
    own = [_head(layer, head, len(tokens), **more) for layer in range(layers) for head in range(heads)]
    return InputView(model, name, None, tuple(tokens), "", tuple(own))


def write_views(run, views):
    """Beside a synthetic run, a part for each."""
    folder = RunFolder(run / FOLDER)
    keys = [f"view{place}" for place in range(len(views))]
    about = {"attnaudit": "0", "versions": {}, "parts": keys, "inputs": dict.fromkeys(keys, 1)}
    with folder.locked():
        folder.open(plain(ViewsIdentity("audit")), about)
        for key, view in zip(keys, views, strict=True):
            folder.parts.write(key, encode_part(key, table_of([view]), Notes()))
    return run
