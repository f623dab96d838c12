"""What capture says of a layer: causal, sliding window, sinks, softcap, heads of keys, rotary positions, padding."""

import pytest
import torch

from attnaudit.capture import capture

pytest.importorskip("transformers")
from tests.capture.tiny_transformers import BOTH_WAYS, batch, build, returned_attention

PLAIN = {
    "causal": False, "window": None, "sinks": False, "softcap": None, "key_heads": 4, "rotary": False, "padding": False,
}  # fmt: skip
CAUSAL = PLAIN | {"causal": True}
ROTARY = CAUSAL | {"rotary": True}
GROUPED = ROTARY | {"key_heads": 2}

#: Of each kind, the traits of its layers in the order they run.
TRAITS = {
    "bert": [PLAIN, PLAIN],
    "gpt2": [CAUSAL, CAUSAL],
    "gpt2 upcast": [CAUSAL, CAUSAL],
    "llama": [GROUPED, GROUPED],
    "qwen3": [GROUPED, GROUPED],
    "opt": [CAUSAL, CAUSAL],
    "gpt_neox": [ROTARY, ROTARY],
    "bloom": [CAUSAL, CAUSAL],
    "falcon": [ROTARY | {"key_heads": 1}] * 2,
    "falcon alibi": [CAUSAL | {"key_heads": 1}] * 2,
    "falcon new": [GROUPED, GROUPED],
    "t5": [PLAIN, PLAIN, CAUSAL, PLAIN, CAUSAL, PLAIN],
    "bart": [PLAIN, PLAIN, CAUSAL, PLAIN, CAUSAL, PLAIN],
    "gpt_oss": [GROUPED | {"sinks": True, "window": 4}, GROUPED | {"sinks": True}],
    "gemma2": [GROUPED | {"softcap": 2.0, "window": 4}, GROUPED | {"softcap": 2.0}],
    "mixtral": [GROUPED | {"window": 4}] * 2,
    "deepseek_v3": [ROTARY, ROTARY],
    "vit": [PLAIN, PLAIN],
}
RUNS = [(kind, way) for kind in TRAITS for way in (("eager", "sdpa") if kind in BOTH_WAYS else ("eager",))]


def traits_of(result):
    """The traits of every layer as plain mappings, in the order the layers ran."""
    assert list(result.traits) == list(dict.fromkeys(result.layer_names))
    return [{name: getattr(traits, name) for name in PLAIN} for traits in result.traits.values()]


@pytest.mark.parametrize(("kind", "way"), RUNS)
def test_layers_have_the_traits_of_their_configuration(kind, way):
    assert traits_of(capture(build(kind, way), batch(kind))) == TRAITS[kind]


@pytest.mark.parametrize("way", ["eager", "sdpa"])
@pytest.mark.parametrize(("kind", "left"), [("bert", False), ("llama", True), ("gpt2", True), ("mixtral", True)])
def test_padding_is_told_from_causal_masks_and_windows(kind, left, way):
    real = torch.tensor([[True] * 9, [True] * 6 + [False] * 3])
    result = capture(build(kind, way), batch(kind, real.flip(1) if left else real))
    assert traits_of(result) == [traits | {"padding": True} for traits in TRAITS[kind]]


@pytest.mark.parametrize("kind", ["gpt_oss", "gemma2"])
def test_heads_carry_the_sinks_and_softcaps_that_their_traits_name(kind):
    result = capture(build(kind), batch(kind))
    for heads in result.layers:
        traits = result.traits[result.layer_names[heads.index[0].layer]]
        assert heads.softcap == traits.softcap
        assert (heads.sink is not None) == traits.sinks


@pytest.mark.parametrize("kind", TRAITS)
def test_the_models_return_matrices_with_the_masks_of_the_table(kind):
    for matrices, traits in zip(returned_attention(kind, batch(kind)), TRAITS[kind], strict=True):
        seen = matrices.flatten(0, 2).amax(dim=0) > 0
        query, key = seen.nonzero().unbind(1)
        assert (len(seen) == seen.shape[1] and bool((key <= query).all())) == traits["causal"]
        assert int((query - key).max()) + 1 == (traits["window"] or len(seen))
