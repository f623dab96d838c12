"""Captured heads of transformers models have the attention matrices that the same models return themselves."""

import itertools

import pytest
import torch

from attnaudit.capture import capture
from attnaudit.errors import CaptureError, InputError
from tests.capture.labels import attention_matrix, by_label

pytest.importorskip("transformers")
from tests.capture.tiny_transformers import BOTH_WAYS, CONFIGS, batch, build, returned_attention

SPECIAL = ("deberta-v2 relative", "longformer")
RUNS = [
    (kind, way)
    for kind in CONFIGS
    if kind not in SPECIAL
    for way in (("eager", "sdpa") if kind in BOTH_WAYS else ("eager",))
]
RIGHT_PADDED = torch.tensor([[True] * 9, [True] * 6 + [False] * 3])
LEFT_PADDED = RIGHT_PADDED.flip(1)
PADDED = [(kind, RIGHT_PADDED) for kind in ("bert", "t5", "bart")] + [
    (kind, LEFT_PADDED) for kind in ("llama", "gpt2", "opt", "qwen3", "falcon", "mixtral")
]


def side(parameter):
    """The name of a parameter of the tests with padding."""
    if parameter is None or isinstance(parameter, str):
        return parameter or "whole"
    return "left" if parameter is LEFT_PADDED else "right"


def without_padding(tensor, real, axis):
    """The tensor without padding along an axis, unless the axis has no padding, or none any more."""
    if real is None or tensor.shape[axis] != len(real):
        return tensor
    return tensor.index_select(axis, real.nonzero().flatten())


def assert_same_attention(result, expected, real=None):
    """Every label of `expected` is captured, no other is, and the matrices agree and make the heads' outputs."""
    found = by_label(result)
    assert {label.layer for label in found} == set(range(len(expected)))
    for number, matrices in enumerate(expected):
        if matrices is None:
            continue
        ours = {tuple(label[1:]): head for label, head in found.items() if label.layer == number}
        assert set(ours) == set(itertools.product(*map(range, matrices.shape[:3])))
        for place, head in ours.items():
            mask = None if real is None else real[place[0]]
            theirs, mine = (
                without_padding(without_padding(matrix, mask, 0), mask, 1)
                for matrix in (matrices[place].double(), attention_matrix(head))
            )
            where = f"layer {number}, (input, window, head) {place}"
            torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-5, msg=lambda m, w=where: f"{w}: {m}")
            value, output = (without_padding(x.double(), mask, 0) for x in (head.value, head.output))
            torch.testing.assert_close(theirs @ value, output, rtol=0, atol=1e-4, msg=lambda m, w=where: f"{w}: {m}")


@pytest.mark.parametrize(("kind", "way"), RUNS)
def test_captured_heads_have_the_attention_the_model_returns(kind, way):
    inputs = batch(kind)
    result = capture(build(kind, way), inputs)
    assert result.refusals == ()
    assert_same_attention(result, returned_attention(kind, inputs))


@pytest.mark.parametrize("way", ["eager", "sdpa"])
@pytest.mark.parametrize(("kind", "real"), PADDED, ids=side)
def test_padded_batches_are_captured_and_padding_is_no_token_of_a_head(kind, real, way):
    inputs = batch(kind, real)
    result = capture(build(kind, way), inputs)
    assert result.refusals == ()
    assert_same_attention(result, returned_attention(kind, inputs), real)
    tokens = {(label.input, len(head.key)) for label, head in by_label(result).items()}
    assert tokens <= {(0, 9), (1, 6), (0, 5), (1, 5)}  # five: the decoder, which has no padding


def test_an_input_of_padding_alone_is_named_and_does_not_bring_back_the_padding_of_others():
    inputs = batch("bert", PADDED[0][1])
    inputs["attention_mask"][1] = 0
    with pytest.raises(InputError, match=r"input-1 has no token that another token sees, only padding"):
        capture(build("bert", "eager"), inputs)


@pytest.mark.parametrize("kind", ["bloom", "falcon alibi", "gpt2 upcast", "gpt_oss", "gemma2", "xlnet", "llama4_text"])
def test_left_padded_batches_are_captured_where_attention_is_written_out(kind):
    inputs = batch(kind, LEFT_PADDED)
    result = capture(build(kind), inputs)
    assert result.refusals == ()
    assert_same_attention(result, returned_attention(kind, inputs), LEFT_PADDED)


@pytest.mark.parametrize("kind", BOTH_WAYS)
def test_fused_and_written_out_attention_give_the_same_heads(kind):
    inputs = batch(kind)
    fused, eager = (by_label(capture(build(kind, way), inputs)) for way in ("sdpa", "eager"))
    assert set(fused) == set(eager)
    for label, head in fused.items():
        for name in ("query", "key", "value", "output", "scale"):
            theirs = getattr(eager[label], name)
            torch.testing.assert_close(
                getattr(head, name), theirs, rtol=1e-4, atol=1e-5, msg=lambda m, n=name, l=label: f"{n} of {l}: {m}"
            )


@pytest.mark.parametrize("way", ["eager", "sdpa"])
def test_opts_scale_multiplies_the_product_although_the_model_scales_its_queries(way):
    for head in by_label(capture(build("opt", way), batch("opt"))).values():
        assert head.scale.item() == pytest.approx(8**-0.5)


@pytest.mark.parametrize("way", ["eager", "sdpa"])
def test_routers_are_listed_apart_and_are_no_attention(way):
    result = capture(build("mixtral", way), batch("mixtral"))
    assert len(result.layer_names) == 2
    listed = " ".join(str(entry) for entry in result.other_softmaxes)
    assert "layers.0.mlp" in listed
    assert "layers.1.mlp" in listed


def test_debertas_relative_positions_are_a_bias_or_refused_by_name():
    """Its logits are QKᵀ plus queries against positions plus keys against positions, which is no fixed bias."""
    inputs = batch("deberta-v2 relative")
    result = refusal = None
    try:
        result = capture(build("deberta-v2 relative"), inputs)
    except CaptureError as error:
        refusal = str(error)
    if result is not None:
        assert_same_attention(result, returned_attention("deberta-v2 relative", inputs))
    else:
        assert "encoder.layer.0.attention.self" in refusal
        assert "bias" in refusal or "position" in refusal


def test_longformers_sparse_attention_is_refused():
    with pytest.raises(CaptureError, match=r"encoder\.layer\.0\.attention\.self: .*(sparse|sliding)"):
        capture(build("longformer"), batch("longformer"))


@pytest.mark.parametrize(("kind", "real"), [(kind, None) for kind in BOTH_WAYS] + PADDED, ids=side)
def test_both_ways_are_one_model_so_that_the_matrices_of_one_hold_for_the_other(kind, real):
    inputs = batch(kind, real)
    with torch.no_grad():
        fused, eager = (build(kind, way)(**inputs)[0] for way in ("sdpa", "eager"))
    if real is not None and kind not in ("t5", "bart"):
        fused, eager = fused[real], eager[real]
    torch.testing.assert_close(fused, eager, rtol=1e-4, atol=1e-4)
