"""A pretrained encoder that classifies sentences, with any attention variant, as fine-tuned by `attnaudit train`."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from attnaudit.attention.layers import swappable_layers
from attnaudit.errors import ModelError, UsageError, first_line
from attnaudit.extras import optional
from attnaudit.numerics.randomness import seeded
from attnaudit.records.architecture import EncoderArchitecture
from attnaudit.sources.attention import install_attention
from attnaudit.sources.hf_library import quiet, the_library
from attnaudit.sources.model import load_model, parse_model

#: Standard deviation of the initial weights of the classifier, as in BERT.
_DEVIATION = 0.02


class EncoderClassifier(nn.Module):
    """Encoder, mean over the tokens of a sentence, dropout, linear map to classes.

    The mean is what sentence encoders such as MiniLM were trained to use. Padding is known by its token, so that the
    tokens are all that the network needs.
    """

    def __init__(self, encoder: nn.Module, padding: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.encoder, self.padding = encoder, padding
        if getattr(encoder, "pooler", None) is not None:
            encoder.pooler = None  # type: ignore[assignment]  # comes after the tokens, and nothing would train it
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(encoder.config.hidden_size, classes)  # type: ignore[union-attr, arg-type]
        nn.init.normal_(self.classifier.weight, std=_DEVIATION)
        nn.init.zeros_(self.classifier.bias)

    def forward(
        self, input_ids: Int64[Tensor, "batch tokens"], attention_mask: Int64[Tensor, "batch tokens"] | None = None
    ) -> Float[Tensor, "batch classes"]:
        """The scores of the classes; without a mask, every token but padding is read."""
        real = input_ids != self.padding if attention_mask is None else attention_mask.bool()
        states = self.encoder(input_ids=input_ids, attention_mask=real.to(input_ids.dtype)).last_hidden_state
        weight = real[..., None].to(states.dtype)
        scores: Tensor = self.classifier(self.dropout((states * weight).sum(dim=1) / weight.sum(dim=1)))
        return scores


@dataclass(frozen=True)
class PretrainedEncoder:
    """An encoder by name: its network, its config as plain data, and the rules of its tokenizer as JSON text."""

    name: str
    module: nn.Module
    config: Mapping[str, Any]
    tokenizer: str
    fingerprint: str

    @property
    def depth(self) -> int:
        """The number of attention layers: those that can be swapped, or what the config says."""
        return len(swappable_layers(self.module)) or int(self.config["num_hidden_layers"])

    def classifier(self, architecture: EncoderArchitecture, seed: int) -> EncoderClassifier:
        """The network to fine-tune, in evaluation mode: pretrained as far as attention permits, a new classifier."""
        module = copy.deepcopy(self.module).float()
        return _built(module, self.config, architecture, seed)


def read_encoder(name: str) -> PretrainedEncoder:
    """A pretrained encoder by the name that `attnaudit audit` takes.

    Raises:
        ModelError: it does not read text, or its tokenizer cannot be stored or pads nothing.
        WeightsError: there is no local copy.
    """
    spec = parse_model(name)
    loaded = load_model(spec)
    config = getattr(loaded.module, "config", None)
    if loaded.tokenizer_rules is None or config is None:
        raise ModelError(f"{name} cannot be fine-tuned on sentences: it must be an encoder with a tokenizer.json.")
    plain = config.to_dict()
    _check_config(plain, name)
    return PretrainedEncoder(name, loaded.module, plain, loaded.tokenizer_rules(), loaded.fingerprint)


def build_encoder(config: Mapping[str, Any], architecture: EncoderArchitecture, seed: int) -> EncoderClassifier:
    """The same network from its config, untrained, in evaluation mode.

    Raises:
        ModelError: the config describes no encoder that transformers can build.
    """
    _check_config(config, architecture.encoder)
    transformers = the_library()
    try:
        with quiet(transformers), seeded(seed):
            known = transformers.AutoConfig.for_model(**config)
            module: nn.Module = transformers.AutoModel.from_config(known)
    except Exception as error:  # transformers raises whatever an odd value leads to
        raise ModelError(f"transformers cannot build {architecture.encoder} ({first_line(error)}).") from error
    return _built(module.float(), config, architecture, seed)


def _check_config(config: Mapping[str, Any], name: str) -> None:
    if config.get("is_encoder_decoder") or config.get("is_decoder"):
        raise ModelError(f"{name} is not an encoder: sentences are named by models such as BERT or MiniLM.")
    for wanted in ("hidden_size", "pad_token_id", "model_type"):
        if config.get(wanted) is None:
            raise ModelError(f"{name} cannot be fine-tuned on sentences: its config has no {wanted}.")


def _built(
    module: nn.Module, config: Mapping[str, Any], architecture: EncoderArchitecture, seed: int
) -> EncoderClassifier:
    with seeded(seed):
        install_attention(module, architecture, architecture.tokens)
        model = EncoderClassifier(module, int(config["pad_token_id"]), architecture.classes, architecture.dropout)
    return model.eval()


class SentenceTokens:
    """From sentences to token numbers, by the rules of a `tokenizer.json`, cut and padded to one length.

    Raises:
        ModelError: the rules cannot be read.
        UsageError: no token of a sentence fits beside those that the rules add.
    """

    def __init__(self, rules: str, padding: int, length: int) -> None:
        library = optional("tokenizers", "hf", "Reading sentences")
        try:
            self._rules = library.Tokenizer.from_str(rules)
        except Exception as error:  # the parser's own
            raise ModelError(f"The tokenizer of the card cannot be read ({first_line(error)}).") from error
        added = self._rules.num_special_tokens_to_add(False)
        if length <= added:
            raise UsageError(
                f"The context must be ≥ {added + 1} tokens, because {added} of a sentence are the tokenizer's own, got "
                f"{length}."
            )
        self._rules.enable_truncation(length)
        self._rules.no_padding()
        self._padding, self._length = padding, length

    def __call__(self, sentences: Sequence[str]) -> Int64[Tensor, "sentences length"]:
        """The numbers, on the CPU."""
        found = torch.full((len(sentences), self._length), self._padding, dtype=torch.int64)
        for row, encoding in zip(found, self._rules.encode_batch(list(sentences)), strict=True):
            row[: len(encoding.ids)] = torch.tensor(encoding.ids)
        return found

    def texts(self, numbers: Sequence[int]) -> list[str]:
        """Every token as it stands in a text, or as the vocabulary writes it if that is nothing."""
        return [self._rules.decode([number]) or str(self._rules.id_to_token(number)) for number in numbers]
