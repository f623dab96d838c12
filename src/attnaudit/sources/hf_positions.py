"""How many tokens a transformers model can read at once.

A tokenizer need not say it, and a config says it under many names; where positions are learned, the table of the
network has the last word. In some tables the first rows are not positions: RoBERTa counts from after its padding
token, OPT and BART from two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from torch import nn

#: What configs call it, in the order in which they are believed.
_NAMES = (
    *("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "max_seq_length"),
    *("max_encoder_position_embeddings", "max_decoder_position_embeddings", "max_source_positions", "n_ctx"),
)
#: Names of tables with a row for every position; those for distances between tokens have other names.
_TABLES = re.compile(
    r"(^|\.)(position_embeddings?|embed_positions?|wpe|positions?_embed|pos_embed|positional_embedding)$"
)


def most_tokens(module: nn.Module, config: Any) -> int | None:
    """The longest text in tokens; None if nothing limits it."""
    said = (getattr(config, name, None) for name in _NAMES)
    limits = [value for value in said if isinstance(value, int) and value > 0]
    return min([*limits, *_rows(module)], default=None)


def _rows(module: nn.Module) -> Iterator[int]:
    """Of each table of learned positions, the rows that tokens can have."""
    for name, table in module.named_modules():
        if isinstance(table, nn.Embedding) and _TABLES.search(name):
            before = getattr(table, "offset", 0 if table.padding_idx is None else table.padding_idx + 1)
            yield table.num_embeddings - before
