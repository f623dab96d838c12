"""What a measure is: its name, meaning, direction, ideal, guard, cost and function together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from torch import Tensor

from attnaudit.measures.guards import ANY_HEAD, Guard

Closer = Literal["higher", "lower", "neither"]


class Scope(StrEnum):
    """What a measure compares, which decides how often it is computed.

    KEYS: queries and keys only, the same for every reference. VALUES: the values with the kernel of the keys, the same
    for every theory. PREDICTION: the values with what a theory predicts. PRIMAL: the scores of a Primal-Attention layer
    with its kernel.
    """

    KEYS = "keys"
    VALUES = "values"
    PREDICTION = "prediction"
    PRIMAL = "primal"


class Cost(StrEnum):
    """What a measure needs beyond products of tokens x dim matrices, per head of N tokens and d value columns.

    EIGENPAIRS: d eigenpairs of an N x N matrix. ASSIGNMENT: the best assignment of d columns. PAIRS: N x N matrices of
    its own. MATCHING: the best assignment of N tokens. The last two are left out of heads with many tokens.
    """

    CHEAP = "cheap"
    EIGENPAIRS = "eigenpairs"
    ASSIGNMENT = "assignment"
    PAIRS = "pairs"
    MATCHING = "matching"

    @property
    def needs_pairs(self) -> bool:
        """Whether every token is compared with every other."""
        return self in (Cost.PAIRS, Cost.MATCHING)


@dataclass(frozen=True)
class HeadKind:
    """A kind of heads, and what is said of others, as in "it is not causal"."""

    holds: Callable[[Any], bool]
    otherwise: str


@dataclass(frozen=True)
class Measure:
    """One number per head; one of your own can be passed to `attnaudit.audit(measures=[…])`.

    Attributes:
        name: under which its numbers are stored.
        text: what it is, in a line.
        function: from a `MeasureInput` (scope PRIMAL: a `PrimalInput`) to a tensor with one number per head. Work that
            several measures need is shared by `MeasureInput.shared`.
        scope: what it compares.
        closer: the direction that is closer to the theory, or "neither" for a plain description.
        ideal: its value for a head for which the theory is exactly true.
        guard: which heads have no number, and why.
        cost: what makes it expensive.
        default: whether an audit computes it unless other measures are named.
        every_theory: of scope PREDICTION: whether it is computed for every theory or only for the first.
        every_reference: whether it is computed for all references and all draws of the null; otherwise not for
            references that are shown for context, for the first draw of the null only, and of null and ideal on the
            first inputs only. Measures that decide need all of them.
        every_input: whether an audit with references computes it for all inputs; otherwise for the first ones, unless
            its protocol is that of the paper, whose claims it decides.
        has_ceiling: whether the best projection of a layer's inputs maximises it, so that no network exceeds that.
        only_for: the kind of heads that has it, such as causal ones; all by default.
    """

    name: str
    text: str
    function: Callable[[Any], Tensor]
    scope: Scope = Scope.PREDICTION
    closer: Closer = "neither"
    ideal: float | None = None
    guard: Guard = ANY_HEAD
    cost: Cost = Cost.CHEAP
    default: bool = True
    every_theory: bool = True
    every_reference: bool = True
    every_input: bool = True
    has_ceiling: bool = False
    only_for: HeadKind | None = None

    def applies_to(self, heads: Any) -> bool:
        """Whether it is computed for these heads."""
        return self.only_for is None or self.only_for.holds(heads)
