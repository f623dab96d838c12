"""The model types of transformers, with its fused and its written-out attention."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import torch
from benchmarks.coverage.case import Case, Inputs, Unsupported
from benchmarks.coverage.hugging_face.by_hand import BY_HAND, Hand
from benchmarks.coverage.hugging_face.image_tokens import with_image_tokens
from benchmarks.coverage.hugging_face.inputs import candidates
from benchmarks.coverage.hugging_face.shrink import HEADS, KEY_HEADS, Shrinking
from torch import nn

#: Models with more parameters than this are not built.
LARGEST = 120_000_000


class Transformers:
    """Every model type that transformers can make a model of."""

    name = "transformers"
    packages = ("transformers",)
    distribution = "transformers"

    def cases(self) -> list[Case]:
        """Every type twice."""
        from transformers import CONFIG_MAPPING

        return [Case(self.name, kind, way) for kind in sorted(CONFIG_MAPPING.keys()) for way in ("sdpa", "eager")]

    def build(self, case: Case) -> tuple[nn.Module, Inputs]:
        """A model of this type, and the first inputs that it takes."""
        from transformers import CONFIG_MAPPING

        hand = BY_HAND.get(case.model, Hand())
        errors: list[str] = []
        for key_heads, sections in product((KEY_HEADS, HEADS), (False, True)):
            try:
                config = Shrinking(key_heads, sections).config(CONFIG_MAPPING[case.model](), **hand.settings)
                model = self._model(config, case.implementation).eval()
            except Unsupported:
                raise
            except Exception as error:  # other settings may fit together
                errors.append(f"{type(error).__name__}: {' '.join(str(error).split())[:160]}")
                continue
            for inputs in [hand.inputs(config)] if hand.inputs else candidates(model):
                message = _problem(model, inputs)
                more = None if message is None else with_image_tokens(model, inputs, message)
                if more is not None:
                    inputs, message = more, _problem(model, more)
                if message is None:
                    return model, inputs
                errors.append(f"{', '.join(inputs)}: {message[:160]}")
        raise ValueError(" | ".join(dict.fromkeys(errors)) or "no inputs to try")

    def _model(self, config: Any, implementation: str) -> nn.Module:
        kind = model_class(config)
        with torch.device("meta"):
            size = sum(parameter.numel() for parameter in _made(kind, config, implementation).parameters())
        if size > LARGEST:
            raise ValueError(f"it has {size:,} parameters")
        return _made(kind, config, implementation)


def _problem(model: nn.Module, inputs: Mapping[str, Any]) -> str | None:
    """Why the model does not take these inputs; None if it does."""
    try:
        with torch.no_grad():
            model(**inputs)
    except Exception as error:  # another model may take them
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return None


def _made(kind: Any, config: Any, implementation: str) -> nn.Module:
    try:
        return kind._from_config(config, attn_implementation=implementation)
    except ValueError as error:
        if "does not support" in str(error) or "not support an attention" in str(error):
            raise Unsupported(f"it has no {implementation} attention") from None
        raise


def model_class(config: Any) -> Any:
    """The class of the plain model of a configuration, or of the first task that it has."""
    from transformers.models.auto import modeling_auto

    mappings = [modeling_auto.MODEL_MAPPING]
    mappings += [value for name, value in vars(modeling_auto).items() if name.endswith("_MAPPING")]
    for mapping in mappings:
        if type(config) in mapping:
            kind = mapping[type(config)]
            return kind[0] if isinstance(kind, (list, tuple)) else kind
    raise Unsupported("it is a part of other models")
