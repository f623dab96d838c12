"""Load damaged and hostile weights files: how many end in a sentence, how many in a traceback, and what they cost.

    python -m benchmarks.fuzz_weights --files 1000

Files are safetensors and torch files, zipped and in the old format: with flipped bits, cut off, with absurd headers and
sizes, compressed, with tensors that cannot be weights, and with pickled code. Each is loaded as the weights of a model,
by its name or as a folder. All of them are loaded in one process, whose memory is measured.
"""

from __future__ import annotations

import argparse
import io
import json
import pickle
import random
import resource
import shutil
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from attnaudit.errors import AttnAuditError
from attnaudit.sources import load_model, parse_model

Tensors = dict[str, Tensor]
#: Bytes that a process may take beyond what it takes for a whole file.
BOUND = 512 << 20
#: How torch files with checksums are called in the table.
ZIPPED = ".pth, zipped"


class Code:
    """What a pickle calls when it is loaded without care."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call


def flipped(content: bytes, draw: random.Random, first: int | None = None) -> bytes:
    """One to eight bits turned over, anywhere or among the first bytes."""
    changed = bytearray(content)
    for _ in range(draw.randint(1, 8)):
        changed[draw.randrange(min(len(changed), first or len(changed)))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def cut(content: bytes, draw: random.Random) -> bytes:
    """The beginning of a file."""
    return content[: draw.randrange(len(content))]


def with_header(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    """A safetensors file with any header, which may lie about its own length."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def safetensors_files(tensors: Tensors, draw: random.Random) -> Iterator[tuple[str, bytes]]:
    """Damaged safetensors files without end, and what is wrong with each."""
    whole = save(tensors)
    size = int.from_bytes(whole[:8], "little")
    header, data = json.loads(whole[8 : 8 + size]), whole[8 + size :]
    name = next(key for key in header if key != "__metadata__")

    def entry(**changes: Any) -> bytes:
        return with_header(header | {name: header[name] | changes}, data)

    while True:
        yield "bits flipped in the header", flipped(whole, draw, 8 + size)
        yield "bits flipped", flipped(whole, draw)
        yield "cut off", cut(whole, draw)
        length = draw.choice([0, 1, size - 1, size + 1, 2**31, 2**40, 2**63, 2**64 - 1])
        yield "absurd header", with_header(whole[8 : 8 + size], data, length)
        text = draw.choice([b"", b"{", b"[]", b"null", b"[" * 10**5, b'{"a":' * 10**5, b"\xff" * 99, b'{"a": 1}'])
        yield "absurd header", with_header(text, data)
        shape = draw.choice([[2**62], [2**31, 2**31], [2**40, 0], [-1], [1.5], ["a"], [], [10**30], [1] * 10**5, None])
        yield "absurd shape", entry(shape=shape)
        end = draw.choice([[0, 2**60], [-4, 4], [8, 4], [len(data), len(data) + 4], [0], "all", None])
        yield "absurd offsets", entry(data_offsets=end)
        yield "another type", entry(dtype=draw.choice(["F64", "I8", "U8", "BOOL", "C64", "F8_E4M3", "Q4", "", None, 3]))
        yield (
            "many tensors",
            with_header({f"t{n}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(10**4)}),
        )


def torch_bytes(content: Any, *, zipped: bool = True) -> bytes:
    """A torch file in memory."""
    file = io.BytesIO()
    torch.save(content, file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()


def compressed(content: bytes, draw: random.Random) -> bytes:
    """The same zip archive deflated, with one part that unpacks to much more."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as plain, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        parts = plain.namelist()
        large = draw.choice(parts)
        for name in parts:
            archive.writestr(name, bytes(1 << 27) if name == large else plain.read(name))
    return packed.getvalue()


def with_size(content: bytes, elements: int, draw: random.Random) -> bytes:
    """The same file in which a number of its pickle, such as the size of a storage, is another one."""
    places = [place for place in range(len(content) - 5) if content[place : place + 1] in (b"J", b"M")]
    place = draw.choice(places)
    return (
        content[:place]
        + pickle.dumps(elements, 2)[2:-1]
        + content[place + (5 if content[place : place + 1] == b"J" else 3) :]
    )


def hostile(marker: Path, draw: random.Random) -> Any:
    """Content whose loading would run code, or take memory."""
    return draw.choice(
        [
            lambda: {"weight": Code(Path.touch, marker)},
            lambda: {"weight": Code(eval, f"open({str(marker)!r}, 'w')")},
            lambda: {"weight": Code(exec, f"open({str(marker)!r}, 'w')")},
            lambda: Code(getattr, Code(__import__, "os"), "getcwd"),
            lambda: {"model": {"weight": torch.ones(2), "code": Code(print, "code ran")}},
            lambda: {"weight": Code(bytearray, 1 << 34)},
            lambda: {"weight": Code(torch.Tensor, 1 << 36)},
            lambda: {"weight": Code(torch.UntypedStorage, 1 << 36)},
        ]
    )()


def odd(tensors: Tensors, draw: random.Random) -> Any:
    """Content that is safe, but not weights."""
    name = next(iter(tensors))
    return draw.choice(
        [
            lambda: {0: torch.ones(2)},
            lambda: tensors | {name: torch.eye(3).to_sparse()},
            lambda: tensors | {name: torch.ones(2, device="meta")},
            lambda: tensors | {name: tensors[name] + 1j},
            lambda: tensors | {name: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)},
            lambda: tensors | {name: tensors[name].to(torch.int8)},
            lambda: tensors | {name: torch.ones(1).expand(1 << 40)},
            lambda: tensors | {"epoch": 3},
            lambda: list(tensors.values()),
            lambda: torch.ones(2),
            lambda: None,
            lambda: {},
        ]
    )()


def torch_files(tensors: Tensors, draw: random.Random, marker: Path) -> Iterator[tuple[str, bytes]]:
    """Damaged and hostile torch files without end, and what is wrong with each."""
    while True:
        for zipped in (True, False):
            whole = torch_bytes(tensors, zipped=zipped)
            yield "bits flipped in the header", flipped(whole, draw, 2000)
            yield "bits flipped", flipped(whole, draw)
            yield "cut off", cut(whole, draw)
            yield (
                "absurd sizes",
                with_size(whole[:20_000], draw.choice([2**31 - 1, 2**40, 2**62, -1, 0]), draw) + whole[20_000:],
            )
            yield "not weights", torch_bytes(odd(tensors, draw), zipped=zipped)
            yield "pickled code", torch_bytes(hostile(marker, draw), zipped=zipped)
        yield "pickled code", pickle.dumps(hostile(marker, draw), draw.randrange(6))
        yield "compressed", compressed(torch_bytes(tensors), draw)
        yield "noise", draw.randbytes(draw.randrange(5000))


@dataclass(frozen=True)
class Target:
    """A model whose weights file is written anew for each loading, and the file before it is damaged."""

    name: str
    file: Path
    given: bool
    whole: bytes

    @cached_property
    def undamaged(self) -> str:
        """The fingerprint of the model as it should be."""
        self.file.write_bytes(self.whole)
        return self.load()

    def load(self) -> str:
        """The fingerprint of what was loaded."""
        return load_model(parse_model(self.name, weights=self.file if self.given else None)).fingerprint


def tiny_folder(folder: Path) -> Path:
    """A BERT of a few thousand numbers, with a tokenizer."""
    import transformers

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.BertConfig(vocab_size=len(words), max_position_embeddings=16, **sizes)
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(words))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    return folder


def targets(folder: Path) -> Iterator[tuple[Target, Callable[[random.Random, Path], Iterator[tuple[str, bytes]]]]]:
    """Models, and the damaged files to load into each."""
    vision = dict(load_model(parse_model("test_vit", random_weights=True)).module.state_dict())
    shipped = dict(load_model(parse_model("vit-small-cifar", random_weights=True)).module.state_dict())
    bert = tiny_folder(folder / "bert")
    encoder = dict(load_model(parse_model(str(bert))).module.state_dict())
    for name, tensors in (("test_vit", vision), ("vit-small-cifar", shipped)):
        yield (
            Target(name, folder / f"{name}.safetensors", given=True, whole=save(tensors)),
            lambda draw, marker, own=tensors: safetensors_files(own, draw),
        )
        yield (
            Target(name, folder / f"{name}.pth", given=True, whole=torch_bytes(tensors)),
            lambda draw, marker, own=tensors: torch_files(own, draw, marker),
        )
    yield (
        Target(str(bert), bert / "model.safetensors", given=False, whole=save(encoder, {"format": "pt"})),
        lambda draw, marker: safetensors_files(encoder, draw),
    )


def _format(file: Path, content: bytes) -> str:
    """Of torch files, whether they are archives, which have checksums."""
    return ZIPPED if file.suffix == ".pth" and content[:2] == b"PK" else file.suffix


def peak() -> int:
    """Bytes that this process took at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    draw, folder = random.Random(asked.seed), Path(tempfile.mkdtemp())
    marker = folder / "code-ran"
    counts: Counter[tuple[str, str, str]] = Counter()
    long = 0
    try:
        streams = [(target, files(draw, marker)) for target, files in targets(folder)]
        right = {target: target.undamaged for target, _ in streams}
        before = peak()
        for number in range(asked.files):
            target, files = streams[number % len(streams)]
            fault, content = next(files)
            target.file.write_bytes(content)
            try:
                outcome = "unchanged" if target.load() == right[target] else "another"
            except AttnAuditError as error:
                outcome = "refused"
                long += "\n" in str(error)
            except Exception:
                outcome = "traceback"
                traceback.print_exc()
            counts[_format(target.file, content), fault, outcome] += 1
        grown, ran = peak() - before, marker.exists()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    outcomes = ("refused", "unchanged", "another", "traceback")
    print(f"{'file':<14}{'fault':<28}" + "".join(f"{name:>11}" for name in outcomes))
    for file, fault in sorted({key[:2] for key in counts}):
        print(f"{file:<14}{fault:<28}" + "".join(f"{counts[file, fault, name]:>11}" for name in outcomes))
    lost = sum(count for key, count in counts.items() if key[2] == "traceback")
    passed = sum(count for key, count in counts.items() if key[0] == ZIPPED and key[2] == "another")
    print(
        f"{sum(counts.values())} files: {lost} tracebacks, {long} errors of several lines, code run: "
        f"{'yes' if ran else 'no'}, files with checksums that became another model: {passed}, "
        f"memory beyond that of whole files: {grown / 2**20:.0f} MiB (bound {BOUND >> 20})"
    )
    return int(bool(lost or long or ran or passed or grown > BOUND))


if __name__ == "__main__":
    sys.exit(main())
