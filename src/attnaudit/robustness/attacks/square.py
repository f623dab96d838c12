"""The Square attack: random squares, without gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Int64
from torch import Tensor

from attnaudit.robustness.attacks.losses import margin
from attnaudit.robustness.attacks.problem import Problem, per_image

_FIRST_SHARE = 0.8
#: The numbers of queries, out of 10,000, after which the area of a square halves.
_HALVED_AFTER = (10, 50, 200, 500, 1_000, 2_000, 4_000, 6_000, 8_000)
#: Queries between checks whether any image is left; rare, because a check synchronises with the device.
_CHECK_EVERY = 100
#: Queries of an image that are made at a time, at most: one that is kept makes those after it worthless.
_AHEAD = 8


def square(problem: Problem, epsilon: float, *, steps: int = 5_000) -> Tensor:
    """Random search (Andriushchenko et al. 2020): start from stripes of ±ε, keep squares of ±ε that raise the margin.

    Squares shrink over time; every image has its own position and signs, one sign per channel. `steps` counts queries.

    Most squares are rejected. So where there is room, the next queries of an image are made at a time, as if each were
    rejected; those after the first that is kept are made again from there. The result is that of one after the other.
    """
    count, channels, _, width = problem.images.shape
    images = problem.project(problem.images + epsilon * problem.random_signs(count, channels, 1, width), epsilon)
    losses = margin(problem.logits(images), problem.labels)
    for first, last in pairwise((0, *range(1, steps, _CHECK_EVERY), steps)):
        squares = _Squares.drawn(problem, range(first, last), steps)
        images, losses = _searched(problem, epsilon, squares, images, losses)
        if bool((losses > 0).all()):
            break
    return images


@dataclass(frozen=True)
class _Squares:
    """Those of some queries, for every image: `sides` per query, the others per query and image."""

    sides: Int64[Tensor, "queries"]
    tops: Int64[Tensor, "queries images"]
    lefts: Int64[Tensor, "queries images"]
    signs: Tensor  # queries, images, channels

    @staticmethod
    def drawn(problem: Problem, queries: Sequence[int], steps: int) -> _Squares:
        """At random, query by query."""
        count, channels, height, width = problem.images.shape
        sides = [_side(query, steps, height, width) for query in queries]
        drawn = [
            (*(_positions(problem, size - side + 1) for size in (height, width)), problem.random_signs(count, channels))
            for side in sides
        ]
        tops, lefts, signs = (torch.stack(own) for own in zip(*drawn, strict=True))
        return _Squares(torch.tensor(sides, device=tops.device), tops, lefts, signs)

    def painted(self, queries: Int64[Tensor, "tries images"], original: Tensor, images: Tensor, size: float) -> Tensor:
        """The images with the square of these queries, its sides ±size from the original."""
        rows, columns = (torch.arange(side, device=images.device) for side in images.shape[2:])
        own = torch.arange(len(images), device=images.device)
        side, top, left = (
            numbers[..., None, None, None]
            for numbers in (self.sides[queries], self.tops[queries, own], self.lefts[queries, own])
        )
        inside = (rows[:, None] >= top) & (rows[:, None] < top + side) & (columns >= left) & (columns < left + side)
        return torch.where(inside, original + size * self.signs[queries, own][..., None, None], images)


def _searched(
    problem: Problem, epsilon: float, squares: _Squares, images: Tensor, losses: Tensor
) -> tuple[Tensor, Tensor]:
    """Images and margins after these queries, several of an image at a time."""
    queries, tries = len(squares.sides), min(problem.tries, _AHEAD, len(squares.sides))
    several, own = problem.repeated(tries), torch.arange(len(images), device=images.device)
    made, offsets = torch.zeros_like(own), torch.arange(tries, device=images.device)[:, None]
    rounds = 0
    while rounds < -(-queries // tries) or bool((made < queries).any()):  # no fewer do, so we look after these
        wanted = made + offsets
        painted = squares.painted(wanted.clamp(max=queries - 1), problem.images, images, epsilon)
        tried = several.project(painted.flatten(0, 1), epsilon)
        new = margin(several.logits(tried), several.labels).view(tries, -1)
        better = (new > losses) & (wanted < queries)
        kept, first = better.any(dim=0), better.int().argmax(dim=0)
        losses = torch.where(kept, new[first, own], losses)
        images = torch.where(per_image(kept), tried.view_as(painted)[first, own], images)
        made, rounds = made + torch.where(kept, first + 1, tries), rounds + 1
    return images, losses


def _positions(problem: Problem, count: int) -> Int64[Tensor, "images"]:
    return torch.randint(0, count, (len(problem.images),), generator=problem.generator, device=problem.images.device)


def _side(query: int, steps: int, height: int, width: int) -> int:
    """The side of a square that covers a share of the image."""
    halvings = sum(query * 10_000 / steps > after for after in _HALVED_AFTER)
    covered = _FIRST_SHARE / 2**halvings * height * width
    return int(min(max(1, round(covered**0.5)), height, width))
