"""Tries for an image that are made at a time give what they would give one after the other, in fewer calls."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from torch import nn

from attnaudit.robustness.attacks.apgd import likeliest_other_classes, targeted_apgd
from attnaudit.robustness.attacks.autoattack import autoattack
from attnaudit.robustness.attacks.fab import targeted_fab
from attnaudit.robustness.attacks.problem import Problem
from attnaudit.robustness.attacks.square import square
from tests.robustness.problems import generator, learned, left, stripes

COUNT, EPSILON = 12, 0.07
#: ε and steps that are enough for some images, and not for all.
HOW = {targeted_apgd: (0.07, 20), targeted_fab: (0.07, 20), square: (0.1, 300), autoattack: (0.07, 6)}


class Counted:
    """A network, and how often it is called: with a gradient, and in all."""

    def __init__(self, network):
        self.network, self.calls, self.gradients, self.largest = network, 0, 0, 0

    def __call__(self, images):
        self.calls, self.gradients = self.calls + 1, self.gradients + images.requires_grad
        self.largest = max(self.largest, len(images))
        return self.network(images)


def problem(room=None):
    """In double precision: how numbers are added up may depend on how many images there are."""
    images, labels = stripes(COUNT, seed=1)
    return Problem(Counted(deepcopy(learned()).double()), images.double(), labels, generator(3), room=room)


@pytest.mark.parametrize("attack", [targeted_apgd, targeted_fab, square, autoattack])
@pytest.mark.parametrize("room", [2 * COUNT, 3 * COUNT + 1, 20 * COUNT])
def test_images_do_not_depend_on_the_room(attack, room):
    alone, together = problem(), problem(room)
    epsilon, steps = HOW[attack]
    expected, made = (attack(own, epsilon, steps=steps) for own in (alone, together))
    torch.testing.assert_close(made, expected, atol=1e-9, rtol=0)
    assert 0 < left(alone, expected) < 1
    assert together.model.calls < alone.model.calls
    assert together.model.largest <= room


def test_all_targets_take_the_calls_of_one():
    """Three others of four classes; a call before for the likeliest, and after for who is fooled."""
    for attack, alone_takes, together_takes in (
        (targeted_apgd, (1 + 3 * 22, 3 * 21), (1 + 22, 21)),
        (targeted_fab, (1 + 3 * 40, 3 * 20), (1 + 40, 20)),
    ):
        for room, takes in ((None, alone_takes), (3 * COUNT, together_takes)):
            own = problem(room)
            attack(own, EPSILON, steps=20)
            assert (own.model.calls, own.model.gradients) == takes


def test_queries_that_are_rejected_take_an_eighth_of_the_calls():
    """A network that is indifferent to squares keeps none of 801, in blocks of 1, 100, …, 100 after the first call."""

    class Indifferent(nn.Module):
        def forward(self, images):
            return torch.tensor([1.0, 0.0]).expand(len(images), 2)

    images = torch.full((COUNT, 3, 8, 8), 0.5)
    labels = torch.zeros(COUNT, dtype=torch.int64)
    for room, calls in ((None, 1 + 801), (8 * COUNT, 1 + 1 + 8 * 13)):
        own = Problem(Counted(Indifferent()), images, labels, generator(3), room=room)
        square(own, EPSILON, steps=801)
        assert own.model.calls == calls


def test_a_square_that_is_kept_is_what_the_next_one_is_painted_on():
    """Every query that paints more of an image is kept, so that each of those tried ahead must be tried again."""

    class Painted(nn.Module):
        """Class 1 comes nearer with every pixel that is changed, and is never ahead."""

        def forward(self, images):
            changed = ((images - 0.5).abs() > EPSILON / 2).double().flatten(1).mean(dim=1)
            return torch.stack([torch.full_like(changed, 2.0), changed + images.flatten(1).mean(dim=1) / 9], dim=1)

    images = torch.full((COUNT, 3, 8, 8), 0.5, dtype=torch.float64)
    start = Problem(Counted(Painted()), images, torch.zeros(COUNT, dtype=torch.int64), generator(3))
    expected = square(start, EPSILON, steps=150)
    ahead = replace(start, generator=generator(3), room=8 * COUNT)
    assert torch.equal(square(ahead, EPSILON, steps=150), expected)


def test_there_is_room_for_one_try_at_least():
    assert [problem(room).tries for room in (None, 1, COUNT, 2 * COUNT - 1, 2 * COUNT)] == [1, 1, 1, 1, 2]
    others = likeliest_other_classes(torch.arange(4.0).repeat(2, 1), torch.tensor([3, 0]), 9)
    assert others.tolist() == [[2, 1, 0], [3, 2, 1]]
