"""Whatever a model does, a capture ends with heads and reasons, and errors of the caller stay errors."""

import pytest
import torch

from attnaudit.capture import capture
from attnaudit.capture.capture import capture_each
from attnaudit.capture.tracing import tracer
from attnaudit.errors import CaptureError
from tests.capture.ways import INPUTS, OneLayer, softmax_product


def test_an_operation_that_cannot_be_followed_is_a_reason_and_no_crash(monkeypatch):
    def fail(*args):
        raise IndexError("index 8 is out of bounds")

    monkeypatch.setattr(tracer, "attention_of", fail)
    with pytest.raises(CaptureError, match=r"aten.bmm.default could not be followed \(IndexError: index 8"):
        capture(OneLayer(softmax_product), INPUTS)


def test_errors_of_the_caller_are_not_taken_for_those_of_the_model():
    def fail(heads):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        capture_each(OneLayer(softmax_product), INPUTS, ["a", "b"], fail, model_name="model")


@pytest.mark.parametrize("make", [torch.jit.script, lambda model: torch.jit.trace(model, INPUTS)])
def test_scripted_and_traced_modules_are_captured(make):
    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = torch.nn.Linear(12, 36)

        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, -1)
            return torch.softmax(q @ k.transpose(-1, -2), -1) @ v

    model = Plain().eval()
    assert len(capture(make(model), INPUTS).layers) == 1
    assert not model._forward_hooks


def test_exported_programs_are_refused_in_one_sentence():
    program = torch.export.export(OneLayer(softmax_product).eval(), (INPUTS,)).module()
    with pytest.raises(CaptureError, match="capture the module that it was made from"):
        capture(program, INPUTS)


def test_flex_attention_is_refused_and_not_missed():
    from torch.nn.attention.flex_attention import flex_attention

    with pytest.raises(CaptureError, match="flex_attention, which cannot be looked into"):
        capture(OneLayer(flex_attention), INPUTS)


def test_a_caller_in_inference_mode_captures_too():
    with torch.inference_mode():
        assert len(capture(OneLayer(softmax_product), INPUTS).layers) == 1
