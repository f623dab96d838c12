"""The networks that we build, in numbers: what a recipe trains and a card describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Tag

from attnaudit.errors import SettingError
from attnaudit.records.later_fields import added_later
from attnaudit.records.ranges import check_range, check_rate

REFERENCE_ATTENTION = "softmax"


@dataclass(frozen=True, kw_only=True)
class AttentionChoice:
    """Which attention variant is in which blocks of a network: the same words for images and text.

    Args:
        attention: a name of `attnaudit ls attention`.
        attention_layers: which blocks have it; all by default.
        attention_options: further arguments of the variant, such as {"iterations": 4}.
        other_attention: what the other blocks have; RPC-Attention in the first layers of a symmetric network is
            `attention: rpc, attention_layers: [0, 1], other_attention: symmetric`.
    """

    attention: str = REFERENCE_ATTENTION
    attention_layers: tuple[int, ...] | None = None
    attention_options: Mapping[str, Any] = field(default_factory=dict)
    other_attention: str = added_later(REFERENCE_ATTENTION)

    def __post_init__(self) -> None:
        if self.attention_layers is not None and not self.attention_layers:
            raise SettingError(
                f"attention_layers is empty, so that no block has {self.attention} attention: name at least one, as in "
                "[0], or leave it out for all."
            )
        if self.attention_layers is None and self.other_attention != REFERENCE_ATTENTION:
            raise SettingError(
                f"other_attention is {self.other_attention}, but attention_layers leaves no other block: name the "
                f"blocks that have {self.attention} attention, as in [0, 1]."
            )


#: What networks that are alike otherwise may differ in.
ATTENTION_FIELDS = tuple(own.name for own in fields(AttentionChoice))


@dataclass(frozen=True)
class Architecture(AttentionChoice):
    """A vision transformer in numbers; the defaults are ViT-Tiny's width on images of 32 pixels.

    Which attention it has is an `AttentionChoice`.

    Args:
        image_size: pixels of a side; of images that are not square, of their height.
        patch_size: pixels of a patch's side; an image has (image_size / patch_size)² + 1 tokens.
        width: channels of a token.
        depth: number of blocks.
        heads: attention heads of a block.
        classes: number of classes.
        drop_path: largest rate of stochastic depth, which grows linearly with depth.
        standardise: whether queries and keys are standardised per token in every pass.
        initialisation: timm's, or torch's defaults as the study has them.
        image_width: pixels of the width, for images that are not square.
        blocks: timm's, or those of a fully attentional network, which attend over channels, too (`sources.fan`).
        decoder: for a network that segments: a linear map from each patch to classes (`sources.segmentation_network`).
    """

    image_size: int = 32
    patch_size: int = 2
    width: int = 192
    depth: int = 12
    heads: int = 3
    classes: int = 10
    drop_path: float = 0.0
    standardise: bool = False
    initialisation: Literal["timm", "torch"] = "timm"
    image_width: int | None = added_later(None, unwritten=True)
    blocks: Literal["vit", "fan"] = added_later("vit", unwritten=True)
    decoder: Literal["linear"] | None = added_later(None, unwritten=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for side in self.image_shape:
            if side < 1 or self.patch_size < 1 or side % self.patch_size:
                raise SettingError(f"images of {side} pixels do not split into patches of {self.patch_size}.")
        _check_heads(self.width, self.heads)
        check_range(1, depth=self.depth)
        check_range(2, classes=self.classes)
        check_rate(drop_path=self.drop_path)

    @property
    def image_shape(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.image_size, self.image_size if self.image_width is None else self.image_width

    @property
    def segments(self) -> bool:
        """Whether it names every pixel, and not the image."""
        return self.decoder is not None

    @property
    def patches(self) -> tuple[int, int]:
        """The number of patches in a column and in a row."""
        height, width = self.image_shape
        return height // self.patch_size, width // self.patch_size

    @property
    def tokens(self) -> int:
        """Patches, and the class token."""
        return self.patches[0] * self.patches[1] + 1


@dataclass(frozen=True)
class DecoderArchitecture(AttentionChoice):
    """A causal language model in numbers. Which attention it has is an `AttentionChoice`.

    Args:
        vocabulary: number of words.
        context: how many words it reads at once.
        width: channels of a word.
        depth: number of blocks.
        heads: attention heads of a block.
        dropout: rate after the embedding and on what every block adds; attention weights are never dropped.
    """

    vocabulary: int = 2
    context: int = 128
    width: int = 192
    depth: int = 6
    heads: int = 6
    dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_heads(self.width, self.heads)
        check_range(1, depth=self.depth, context=self.context)
        check_range(2, vocabulary=self.vocabulary)
        check_rate(dropout=self.dropout)

    @property
    def tokens(self) -> int:
        """Words of a context."""
        return self.context


@dataclass(frozen=True)
class EncoderArchitecture(AttentionChoice):
    """A pretrained encoder, and a linear map from the mean of its tokens to classes.

    Which attention it has is an `AttentionChoice`: its weights are those of the encoder as far as they fit.

    Args:
        encoder: a language model by the name that `attnaudit audit` takes: minilm, a folder, hf:NAME.
        classes: number of classes.
        context: how many tokens of a sentence it reads; the rest is cut off.
        depth: number of attention layers, known from the encoder.
        dropout: rate on what is classified; the encoder has its own.
    """

    encoder: str = "minilm"
    classes: int = 2
    context: int = 64
    depth: int = 1
    dropout: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(1, context=self.context, depth=self.depth)
        check_range(2, classes=self.classes)
        check_rate(dropout=self.dropout)

    @property
    def tokens(self) -> int:
        """Tokens of a sentence, padding included."""
        return self.context

    @property
    def segments(self) -> bool:
        """It does not."""
        return False


def _evaluated_kind(content: Any) -> str:
    """The name of the class that plain or typed content is of: only an `EncoderArchitecture` names an encoder."""
    names = content if isinstance(content, Mapping) else getattr(content, "__dict__", {})
    return "EncoderArchitecture" if "encoder" in names else "Architecture"


#: The architecture of a network that `attnaudit robust` evaluates.
ClassifierArchitecture = Annotated[
    Annotated[Architecture, Tag("Architecture")] | Annotated[EncoderArchitecture, Tag("EncoderArchitecture")],
    Discriminator(_evaluated_kind),
]


def _check_heads(width: int, heads: int) -> None:
    if heads < 1 or width < 1 or width % heads:
        raise SettingError(f"a width of {width} does not split into {heads} heads.")
