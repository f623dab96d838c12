"""The architectures of Table 4, small and with random weights, with fused and with eager attention."""

import pytest
import torch

from attnaudit.capture import capture
from attnaudit.errors import CaptureError

transformers = pytest.importorskip("transformers")

SMALL = {
    "vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40,
    "max_position_embeddings": 80, "pad_token_id": 1,
}  # fmt: skip
EXTRA = {
    "electra": {"embedding_size": 32},
    "luke": {"entity_vocab_size": 10, "entity_emb_size": 8},
    "longformer": {"attention_window": 8},
}


def build(kind, attention):
    config = transformers.AutoConfig.for_model(kind, **SMALL, **EXTRA.get(kind, {}))
    config._attn_implementation = attention
    torch.manual_seed(0)
    return transformers.AutoModel.from_config(config)


def batch():
    mask = torch.ones(2, 16, dtype=torch.long)
    mask[1, 10:] = 0
    return {
        "input_ids": torch.randint(5, 100, (2, 16), generator=torch.Generator().manual_seed(0)),
        "attention_mask": mask,
    }


@pytest.mark.parametrize(
    ("kind", "attention"),
    [(kind, way) for kind in ("electra", "bert", "camembert", "roberta", "xlm-roberta") for way in ("sdpa", "eager")]
    + [("luke", "eager")],
)
def test_encoders_are_captured_without_their_padding(kind, attention):
    result = capture(build(kind, attention), batch())
    assert result.refusals == ()
    assert result.certificate.worst < 1e-5
    assert {(heads.index[0].input, heads.index[0].layer, *heads.key.shape) for heads in result.layers} == {
        ("input-0", 0, 4, 16, 8), ("input-0", 1, 4, 16, 8), ("input-1", 0, 4, 10, 8), ("input-1", 1, 4, 10, 8),
    }  # fmt: skip
    for heads in result.layers:
        torch.testing.assert_close(heads.scale, torch.full((4,), 8**-0.5))


def test_longformers_sliding_window_is_refused_with_its_reason():
    with pytest.raises(CaptureError, match=r"encoder.layer.0.attention.self: .*sliding-window"):
        capture(build("longformer", "eager"), batch())
