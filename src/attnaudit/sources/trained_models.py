"""Models trained by `attnaudit train`: a folder with `card.json` and `model.safetensors`, or a built-in one."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from attnaudit.errors import AttnAuditError, MissingExtraError, ModelError, WeightsError, first_line
from attnaudit.numerics.digest import content_digest, digest
from attnaudit.records.card import CARD, Card, ImageCard
from attnaudit.sources.cards import build_network, card_identity, preprocessing, read_card, tokeniser, word_texts
from attnaudit.sources.model import IMAGES, TEXT, LoadedModel, ModelInputs, ModelSpec
from attnaudit.sources.weights import fingerprint, fit_weights, read_weights

WEIGHTS = "model.safetensors"
#: The folder of models that come with the package.
BUILT_IN = Path(__file__).parent / "built_in"


def folder_of(name: str) -> Path:
    """The folder of a built-in model, or of a path; `./name` is a path, whatever models are built in."""
    built_in = Path(name).name == name and (BUILT_IN / name / CARD).is_file()
    return BUILT_IN / name if built_in else Path(name)


def check(name: str) -> None:
    """Check that the folder has a readable card."""
    read_card(folder_of(name))


def locate_weights(spec: ModelSpec) -> ModelSpec:
    """The spec with the weights file of its folder."""
    return spec if spec.weights is not None else replace(spec, weights=folder_of(spec.name) / WEIGHTS)


def inputs(spec: ModelSpec) -> ModelInputs:
    """Images for a model of images, otherwise text."""
    return IMAGES if isinstance(read_card(folder_of(spec.name)), ImageCard) else TEXT


def load(spec: ModelSpec) -> LoadedModel:
    """Build the network with its weights, in float32.

    Raises:
        ModelError: the card cannot be read, or the network cannot be built.
        WeightsError: the weights beside the card are not those that it is of.
    """
    folder = folder_of(spec.name)
    card = read_card(folder)
    try:
        module = build_network(card, spec.random_seed or 0)
    except MissingExtraError:
        raise
    except AttnAuditError as error:
        raise ModelError(f"{folder / CARD} describes a network that cannot be built: {error}") from error
    except Exception as error:  # odd options of an attention variant may lead to anything
        raise ModelError(f"{folder / CARD} describes a network that cannot be built ({first_line(error)}).") from error
    if spec.weights is not None:
        if spec.weights == folder / WEIGHTS:
            _check_own(spec.weights, card)
        weights = read_weights(spec.weights)
        halves = {name: tensor.float() for name, tensor in weights.items() if tensor.is_floating_point()}
        fit_weights(module, {**weights, **halves}, spec.weights, spec.name)
    return LoadedModel(
        spec.label,
        module,
        digest(fingerprint(module), card_identity(card)),
        "random" if spec.random_seed is not None else str(spec.weights),
        preprocess=partial(preprocessing, card) if isinstance(card, ImageCard) else None,
        tokenise=None if isinstance(card, ImageCard) else tokeniser(card),
        token_texts=None if isinstance(card, ImageCard) else word_texts(card),
        untrained=lru_cache(maxsize=1)(partial(build_network, card)),
        card=card,
    )


def _check_own(weights: Path, card: Card) -> None:
    """Older cards do not say of which weights they are."""
    known = card.facts.get("weights_digest")
    if known is not None and weights.is_file() and content_digest([weights.read_bytes()]) != known:
        raise WeightsError(f"{weights} is damaged, or of another training than {CARD} beside it: copy both again.")
