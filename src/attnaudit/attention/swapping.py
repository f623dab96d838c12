"""Swap an attention variant into a trained model, keeping its weights, and undo the swap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from torch import nn

from attnaudit.attention.base import AttentionArguments
from attnaudit.attention.layers import SwappableLayer, copy_weights, swappable_layers, variant_parameters
from attnaudit.attention.registry import variant_named
from attnaudit.display import counted
from attnaudit.errors import ModelError, UsageError, unknown

_WORDS = {"q": "query", "k": "key", "v": "value"}


@dataclass(frozen=True)
class SwappedLayer:
    """The changes to one layer: trained projections kept and dropped, and new parameters."""

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
    """A swap of attention layers; prints its changes, and can be undone (also at the end of a `with` block)."""

    def __init__(
        self,
        model: nn.Module,
        variant: str,
        layers: Sequence[SwappedLayer],
        placed: Sequence[tuple[SwappableLayer, nn.Module]],
    ) -> None:
        self.model = model
        self.variant = variant
        self.layers = tuple(layers)
        self._placed = tuple(placed)

    def undo(self) -> None:
        """Put the original layers and their weights back; calling it again does nothing.

        They take on the device, dtype and mode that the model has now.
        """
        for layer, placed in self._placed:
            if any(self.model.get_submodule(name) is not placed for name in layer.names):
                raise UsageError(f"{layer.names[0]} was swapped again later: undo the last swap first.")
        for layer, placed in self._placed:
            current = next(placed.parameters())
            layer.module.to(device=current.device, dtype=current.dtype).train(placed.training)
            _place(self.model, layer, layer.module)
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

    Trained projections are copied if the variant has them (a symmetric layer keeps K and V and drops Q), as are norms,
    dropout and the output projection. The returned `Swap` lists what was kept, dropped and added, and can be undone.

    Args:
        model: the model, which is changed in place.
        variant: a name in `attnaudit.attention.VARIANTS`.
        layers: numbers of attention layers, from 0 (negative numbers count from the end); all by default.
        options: further arguments of the variant's module, such as `iterations=4`.

    Raises:
        ModelError: the model has no attention layer that can be swapped.
        UsageError: the variant, a layer or an option is unknown or does not fit.
    """
    kind = variant_named(variant)
    if not isinstance(model, nn.Module):
        raise UsageError(f"swap needs a torch module, got {type(model).__name__}.")
    found = swappable_layers(model)
    if not found or any("" in layer.names for layer in found):
        raise ModelError(
            f"{type(model).__name__} has no attention layer that can be swapped: timm's Attention and transformers' "
            "ViT and BERT encoders can be, inside a model."
        )
    if fixed := sorted(set(options) & set(AttentionArguments.__annotations__)):
        raise UsageError(f"A swap takes {', '.join(fixed)} from the replaced layer: remove this option.")
    for name in options:
        if name not in kind.options:
            raise unknown("option", name, kind.options, about=f" of {variant} attention")
    if isinstance(layers, (int, str)):
        raise UsageError(f"layers must be a list of numbers, such as [{layers}], got {layers}.")
    built = []
    chosen = range(len(found)) if layers is None else dict.fromkeys(_index(layer, len(found)) for layer in layers)
    for number in chosen:
        old = found[number]
        try:
            new = kind.module(old.width, old.num_heads, **{**old.arguments, **options})
        except TypeError as error:
            raise UsageError(f"{kind.module.__name__} does not accept these options ({error}).") from error
        kept, dropped = copy_weights(old, new)
        report = SwappedLayer(
            number,
            old.names[0],
            kept=(*(_WORDS[letter] for letter in kept), *(["output"] if isinstance(new.proj, nn.Linear) else [])),
            dropped=(*(_WORDS[letter] for letter in dropped), *old.own_parameters),
            new=(*(_WORDS[p] for p in new.projections if p not in kept), *variant_parameters(new)),
        )
        built.append((old, old.wrapped(new).train(old.module.training), report))
    for old, placed, _ in built:  # only after all could be built
        _place(model, old, placed)
    return Swap(model, variant, [report for _, _, report in built], [(old, placed) for old, placed, _ in built])


def _index(layer: int, count: int) -> int:
    if not -count <= layer < count:
        raise UsageError(f"This model has {counted(count, 'attention layer')}, numbered from 0, got layer {layer}.")
    return layer % count


def _place(model: nn.Module, layer: SwappableLayer, module: nn.Module) -> None:
    for name in layer.names:
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, module)
