"""What a theory returns is checked, and the message shows the shapes."""

from dataclasses import replace

import jaxtyping
import pytest
import torch

from attnaudit.errors import ShapeError, UsageError
from attnaudit.kernel.prediction import Prediction
from attnaudit.theories.checking import check_prediction
from tests.heads import random_heads


@pytest.fixture(autouse=True)
def types_as_for_users(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # the types of arguments are not checked for users


@pytest.fixture
def heads():
    return random_heads(0, heads=2, tokens=9, dim=4)


@pytest.fixture
def right(heads):
    return Prediction(torch.zeros_like(heads.value), torch.zeros(2), (None, None))


def test_a_prediction_of_the_shape_of_the_values_is_accepted(heads, right):
    check_prediction("mine", right, heads)


@pytest.mark.parametrize("wrong", [(2, 8, 4), (2, 9, 3), (1, 9, 4), (9, 4)], ids=str)
def test_values_of_a_wrong_shape_are_shown_beside_the_right_one(heads, right, wrong):
    with pytest.raises(ShapeError, match=r"'mine' must return values of shape \(2, 9, 4\), got \(.*\)"):
        check_prediction("mine", replace(right, values=torch.zeros(wrong)), heads)


def test_every_head_needs_a_scale_and_an_entry_among_the_problems(heads, right):
    with pytest.raises(ShapeError, match="log_scale of shape"):
        check_prediction("mine", replace(right, log_scale=torch.zeros(3)), heads)
    with pytest.raises(ShapeError, match=r"problems for 2 heads.*got 1"):
        check_prediction("mine", replace(right, problems=(None,)), heads)


@pytest.mark.parametrize("returned", [None, torch.zeros(2, 9, 4)], ids=["None", "tensor"])
def test_what_is_no_prediction_is_refused(heads, returned):
    with pytest.raises(UsageError, match="'mine' must return a Prediction, got"):
        check_prediction("mine", returned, heads)


def test_values_must_be_a_tensor(heads, right):
    with pytest.raises(UsageError, match="values as a torch tensor, got ndarray"):
        check_prediction("mine", replace(right, values=right.values.numpy()), heads)
