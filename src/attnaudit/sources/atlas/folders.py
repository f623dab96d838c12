"""Write the folder of a converted model: config, weights, and a tokenizer if its vocabulary is a plain list."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from attnaudit.sources.atlas.building import CONFIG, WEIGHTS

#: The special tokens of BERT, by what transformers calls them.
BERT_SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


def write_model(folder: Path, config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Write config and weights; tensors that share memory are written for each name."""
    (folder / CONFIG).write_text(json.dumps(config, indent=1), encoding="utf-8")
    own = {name: tensor.detach().clone(memory_format=torch.contiguous_format) for name, tensor in weights.items()}
    save_file(own, folder / WEIGHTS, metadata={"format": "pt"})


def write_tokenizer(folder: Path, tokens: Sequence[str], special: Mapping[str, str], pattern: str = ".") -> None:
    """Write a tokenizer of which every token is a whole piece of the text, such as a letter.

    Args:
        folder: where.
        tokens: all tokens, in the order of their numbers.
        special: those with a meaning, by what transformers calls it; the text is put between `cls_token` and
            `sep_token`.
        pattern: a regular expression for one piece; what lies between pieces is dropped.
    """
    import tokenizers
    from tokenizers import models, pre_tokenizers, processors

    numbers = {token: number for number, token in enumerate(tokens)}
    rules = tokenizers.Tokenizer(models.WordLevel(numbers, unk_token=special["unk_token"]))
    rules.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(pattern), behavior="removed", invert=True)
    first, last = special["cls_token"], special["sep_token"]
    rules.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", special_tokens=[(first, numbers[first]), (last, numbers[last])]
    )
    rules.add_special_tokens(list(dict.fromkeys(special.values())))
    rules.save(str(folder / "tokenizer.json"))
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")


def copy_wordpieces(folder: Path, vocabulary: Path, *, lower: bool) -> None:
    """Write the tokenizer of BERT: pieces of words from a `vocab.txt`, of a text whose letters may be made small."""
    shutil.copyfile(vocabulary, folder / "vocab.txt")
    about = {"tokenizer_class": "BertTokenizer", "do_lower_case": lower, **BERT_SPECIAL}
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
