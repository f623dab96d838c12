"""Folders of a tiny BERT in Hugging Face layout, whole or with something changed."""

import json
import string

import torch
from safetensors.torch import save_file

CONFIG = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_size": 32,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "pad_token_id": 0,
    "type_vocab_size": 2,
}
WORDS = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *string.ascii_lowercase,
    *(f"##{letter}" for letter in string.ascii_lowercase),
    *("the", "cat", "dog", "runs", "sleeps", "because", "and", "under", "over", "tree"),
]
TEXT = " ".join(WORDS[-10:] * 5)


def tiny_weights(**config):
    """The weights of the whole network, from seed 0."""
    import transformers

    torch.manual_seed(0)
    model = transformers.AutoModel.from_config(
        transformers.AutoConfig.for_model(**(CONFIG | config), vocab_size=len(WORDS))
    )
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def tiny_bert(folder, weights=None, *, tokenizer=True, legacy=False, **config):
    """Write a folder with these weights, by default all of them; `legacy` weights are a file of `torch.save`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | {"vocab_size": len(WORDS)} | config))
    weights = tiny_weights() if weights is None else weights
    if legacy:
        torch.save(weights, folder / "pytorch_model.bin")
    else:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    if tokenizer:
        write_tokenizer(folder)
    return folder


def write_fast_tokenizer(folder, words=WORDS):
    """The words and rules in one `tokenizer.json`, as every kind of model may have it."""
    import tokenizers
    import transformers

    rules = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]")
    )
    rules.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=rules, unk_token="[UNK]").save_pretrained(folder)


def write_tokenizer(folder, words=WORDS, **config):
    """The words and rules, without the `tokenizer.json` that repeats them."""
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    content = {"tokenizer_class": "BertTokenizer", "do_lower_case": True} | config
    (folder / "tokenizer_config.json").write_text(json.dumps(content))
