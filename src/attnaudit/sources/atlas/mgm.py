"""MGM, a GPT-2 of microbiomes: a sample is a row of genera, the most enriched one first.

Its vocabulary is the list of genera of the package. Ordinary text means nothing to it: it is audited on communities
that it draws itself, one genus after the other.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas.checks import language_model
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart
from attnaudit.sources.texts import PASSAGE_WORDS
from attnaudit.sources.weights import read_weights

_PACKAGE = "microformer-mgm==0.5.8"
_CONFIG, _WEIGHTS, _GENERA = "config.json", "pytorch_model.bin", "phylogeny.csv"
_SPECIAL = ("<pad>", "<mask>", "<bos>", "<eos>")
_PAD, _MASK, _BEGINNING, _END = range(len(_SPECIAL))
_SAMPLES, _COMMUNITIES = "communities.txt", 32
#: A trained model expects some genera after others: it is far less surprised than one that guesses, by ln 9,665 = 9.2.
_MOST_SURPRISE = 6.0


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config, weights, tokenizer and the communities."""
    shutil.copyfile(files[_CONFIG], folder / _CONFIG)
    weights = {name: tensor.clone() for name, tensor in read_weights(files[_WEIGHTS]).items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with files[_GENERA].open(newline="", encoding="utf-8") as stream:
        genera = [row[0] for row in csv.reader(stream)][1:]
    _write_tokenizer(genera, folder)
    (folder / _SAMPLES).write_text("\n".join(_communities(folder)) + "\n", encoding="utf-8")
    return ()


def _write_tokenizer(genera: list[str], folder: Path) -> None:
    import tokenizers
    from tokenizers import models, pre_tokenizers, processors

    numbers = {name: number for number, name in enumerate([*_SPECIAL, *genera])}
    rules = tokenizers.Tokenizer(models.WordLevel(numbers, unk_token=_SPECIAL[_MASK]))
    rules.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ends = [(_SPECIAL[token], token) for token in (_BEGINNING, _END)]
    rules.post_processor = processors.TemplateProcessing(single="<bos> $A <eos>", special_tokens=ends)
    rules.add_special_tokens(list(_SPECIAL))
    rules.save(str(folder / "tokenizer.json"))
    special = {"pad_token": "<pad>", "unk_token": "<mask>", "bos_token": "<bos>", "eos_token": "<eos>"}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **special}))


def _communities(folder: Path) -> list[str]:
    """Genera drawn by the model, none twice, as many as make one passage."""
    model, tokenizer = language_model(folder)
    drawn, past = torch.full((_COMMUNITIES, 1), _BEGINNING), None
    source = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for _ in range(PASSAGE_WORDS):
            step = model(drawn[:, -1:], past_key_values=past, use_cache=True)
            past, scores = step.past_key_values, step.logits[:, -1].scatter(1, drawn, -torch.inf)
            scores[:, : len(_SPECIAL)] = -torch.inf
            drawn = torch.cat([drawn, torch.multinomial(scores.softmax(-1), 1, generator=source)], 1)
    return [" ".join(tokenizer.convert_ids_to_tokens(row)) for row in drawn[:, 1:].tolist()]


def check(folder: Path) -> None:
    """Check that a community of the human gut surprises the model less than a guess would.

    Raises:
        WeightsError: it does not.
    """
    model, tokenizer = language_model(folder)
    gut = "g__Bacteroides g__Faecalibacterium g__Roseburia g__Blautia g__Alistipes g__Parabacteroides g__Ruminococcus"
    ids = tokenizer(gut, return_tensors="pt")["input_ids"][:, :-1]
    with torch.no_grad():
        surprise = torch.nn.functional.cross_entropy(model(ids).logits[0, :-1], ids[0, 1:]).item()
    if _MASK in ids or surprise > _MOST_SURPRISE:
        raise WeightsError(f"It is surprised by a community of the human gut ({surprise:.1f} nats per genus).")


MGM = AtlasModel(
    name="mgm",
    field="microbiomes",
    architecture="GPT-2, 8 layers, 8 heads, width 256",
    licence="MIT",
    megabytes=33,
    files=tuple(
        KnownFile(Path(path).name, sha256, (PackagePart(_PACKAGE, f"mgm/resources/{path}"),))
        for path, sha256 in (
            (f"general_model/{_CONFIG}", "88e4940036404ca90d2b1a79f38948efd419454484eb394196edeb9957fec499"),
            (f"general_model/{_WEIGHTS}", "7a83b442dcb0cbe2a4248ea9922de58e15edfa3a1ad71d07519dc8594f4511b8"),
            (_GENERA, "016b8264eed155b134ab55e387e8f21c7e46241bf987a83df49d6604c6b378db"),
        )
    ),
    convert=convert,
    check=check,
    reads="names of genera, such as g__Bacteroides",
    texts=lambda folder: (folder / _SAMPLES).read_text("utf-8").splitlines(),
)
