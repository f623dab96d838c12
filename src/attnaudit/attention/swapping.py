"""Swapping an attention variant into a model that is already there, with its trained weights, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from torch import nn

from attnaudit.attention.registry import variant_named
from attnaudit.attention.sites import Site, attention_sites, install
from attnaudit.errors import ModelError, UsageError

_WORDS = {"q": "query", "k": "key", "v": "value"}


@dataclass(frozen=True)
class SwappedLayer:
    """What became of one layer: which trained projections it kept, which it dropped, which parameters are new."""

    layer: int
    name: str
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    new: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"kept {', '.join(self.kept)}"]
        parts += [f"dropped {', '.join(self.dropped)}"] if self.dropped else []
        parts += [f"new {', '.join(self.new)}"] if self.new else []
        return f"layer {self.layer} ({self.name}): {'; '.join(parts)}"


class Swap:
    """A change that was made to a model; prints what it did, and undoes it (also at the end of a `with` block)."""

    def __init__(self, model: nn.Module, variant: str, layers: Sequence[SwappedLayer], sites: Sequence[Site]) -> None:
        self.model = model
        self.variant = variant
        self.layers = tuple(layers)
        self._sites = tuple(sites)

    def undo(self) -> None:
        """Put the original layers, with their own weights, back where they were."""
        for site in self._sites:
            _place(self.model, site.name, site.module)

    def __enter__(self) -> Swap:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()

    def __repr__(self) -> str:
        return "\n".join([f"Swap({self.variant} into {type(self.model).__name__})", *(f"  {s}" for s in self.layers)])


def swap(model: nn.Module, variant: str, layers: Sequence[int] | None = None, **options: Any) -> Swap:
    """Replace attention layers of a timm ViT or a transformers ViT or BERT, in place, by a variant.

    Trained projections are copied where the variant has them (a symmetric layer keeps K and V and drops Q), as are
    norms, dropout and the output projection; the returned `Swap` says what was kept, dropped and added, and can undo
    it.

    Args:
        model: the model; it is changed.
        variant: a name of `attnaudit.attention.VARIANTS`.
        layers: which attention layers, counted from 0 (negative from the end); all by default.
        options: further arguments of the variant's module, such as `iterations=4`.

    Raises:
        ModelError: the model has no attention layer that can be swapped.
        UsageError: there is no such variant or layer, or an option does not fit.
    """
    kind = variant_named(variant)
    sites = attention_sites(model)
    if not sites:
        raise ModelError(
            f"{type(model).__name__} has no attention layer that can be swapped: timm's Attention and transformers' "
            "ViT and BERT encoders can."
        )
    chosen = range(len(sites)) if layers is None else [_index(layer, len(sites)) for layer in layers]
    swapped = []
    for layer in chosen:
        site = sites[layer]
        try:
            new = kind.module(site.width, site.num_heads, **{**site.arguments, **options})
        except TypeError as error:
            raise UsageError(f"{kind.module.__name__} does not take these options ({error}).") from error
        kept, dropped = install(site, new)
        new.train(site.module.training)
        swapped.append((site, new, SwappedLayer(layer, site.name, *_words(kept, dropped), _added(new, kept))))
    for site, new, _ in swapped:  # only when all could be built
        _place(model, site.name, site.fitted(new))
    return Swap(model, variant, [report for _, _, report in swapped], [site for site, _, _ in swapped])


def _words(kept: tuple[str, ...], dropped: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return (*(_WORDS[letter] for letter in kept), "output"), tuple(_WORDS[letter] for letter in dropped)


def _added(new: Any, kept: tuple[str, ...]) -> tuple[str, ...]:
    own = {"q_norm", "k_norm", "norm", "gate", "proj", new.projections}
    fresh = tuple(_WORDS[letter] for letter in new.projections if letter not in kept)
    return fresh + tuple(name for name, _ in new.named_parameters() if name.partition(".")[0] not in own)


def _index(layer: int, count: int) -> int:
    if not -count <= layer < count:
        raise UsageError(f"There is no attention layer {layer}: the model has {count}, 0 to {count - 1}.")
    return layer % count


def _place(model: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, child = name.rpartition(".")
    setattr(model.get_submodule(parent), child, module)
