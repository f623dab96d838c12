"""Swapping an attention variant into a model that is already there, with its trained weights, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from torch import nn

from attnaudit.attention.base import AttentionArguments
from attnaudit.attention.registry import variant_named
from attnaudit.attention.sites import Site, attention_sites, install, variant_parameters
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

    def __init__(
        self,
        model: nn.Module,
        variant: str,
        layers: Sequence[SwappedLayer],
        placed: Sequence[tuple[Site, nn.Module]],
    ) -> None:
        self.model = model
        self.variant = variant
        self.layers = tuple(layers)
        self._placed = tuple(placed)

    def undo(self) -> None:
        """Put the original layers, with their own weights, back where they were; a second time does nothing.

        Where the model has been moved or put into another mode since, so are they.
        """
        for site, placed in self._placed:
            if any(self.model.get_submodule(name) is not placed for name in site.names):
                raise UsageError(f"{site.names[0]} was swapped again since: undo the last swap first.")
        for site, placed in self._placed:
            current = next(placed.parameters())
            site.module.to(device=current.device, dtype=current.dtype).train(placed.training)
            _place(self.model, site, site.module)
        self._placed = ()

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
    if not sites or any("" in site.names for site in sites):
        raise ModelError(
            f"{type(model).__name__} has no attention layer that can be swapped: timm's Attention and transformers' "
            "ViT and BERT encoders can, inside a model."
        )
    if taken := sorted(set(options) & set(AttentionArguments.__annotations__)):
        raise UsageError(f"{', '.join(taken)} is taken from the layer that is replaced: it is no option of a swap.")
    if isinstance(layers, int):
        raise UsageError(f"layers is a list of numbers, such as [{layers}].")
    built = []
    for layer in range(len(sites)) if layers is None else [_index(layer, len(sites)) for layer in layers]:
        site = sites[layer]
        try:
            new = kind.module(site.width, site.num_heads, **{**site.arguments, **options})
        except TypeError as error:
            raise UsageError(f"{kind.module.__name__} does not take these options ({error}).") from error
        kept, dropped = install(site, new)
        new.train(site.module.training)
        report = SwappedLayer(
            layer,
            site.names[0],
            kept=(*(_WORDS[letter] for letter in kept), *(["output"] if isinstance(new.proj, nn.Linear) else [])),
            dropped=(*(_WORDS[letter] for letter in dropped), *site.own_parameters),
            new=(*(_WORDS[p] for p in new.projections if p not in kept), *variant_parameters(new)),
        )
        built.append((site, site.fitted(new), report))
    for site, new_layer, _ in built:  # only when all could be built
        _place(model, site, new_layer)
    return Swap(model, variant, [report for _, _, report in built], [(site, placed) for site, placed, _ in built])


def _index(layer: int, count: int) -> int:
    if not -count <= layer < count:
        raise UsageError(f"There is no attention layer {layer}: the model has {count}, 0 to {count - 1}.")
    return layer % count


def _place(model: nn.Module, site: Site, module: nn.Module) -> None:
    for name in site.names:
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, module)
