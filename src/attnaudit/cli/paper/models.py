"""The models on which a table or figure of the study is repeated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attnaudit.cli.console import say
from attnaudit.errors import ModelError, UsageError, WeightsError

if TYPE_CHECKING:
    from attnaudit.sources.model import ModelSpec


def named_or_known(
    names: Sequence[str],
    *,
    language: bool,
    weights: Path | None,
    random_weights: bool,
    seed: int,
    download: bool,
) -> list[ModelSpec]:
    """The named models, or all available language or vision models of the study."""
    from attnaudit.papers.published import SAME_MODEL, TABLE4, VISION_MODELS
    from attnaudit.sources.selection import select_specs

    if names:
        return select_specs(names, weights=weights, random_weights=random_weights, seed=seed, download=download)
    if weights is not None:
        raise UsageError("--weights needs a model name, as in attnaudit paper table1 deit_tiny_patch16_224.")
    found: list[ModelSpec] = []
    missing: list[str] = []
    ours = {theirs: name for name, theirs in SAME_MODEL.items()}
    known = [ours.get(name, f"hf:{name}") for name in TABLE4] if language else list(VISION_MODELS)
    for name in known:
        try:
            found += select_specs([name], weights=None, random_weights=random_weights, seed=seed, download=download)
        except (WeightsError, ModelError):
            missing.append(name)
    if not found:
        raise WeightsError(
            f"None of the {len(known)} models of the study has local weights: name one with --weights FILE, or use "
            "--download."
        )
    if missing:
        say(f"Left out {len(missing)} of {len(known)} models without local weights: {', '.join(missing)}.")
    return found
