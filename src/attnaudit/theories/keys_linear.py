"""Values as a linear map of the keys."""

from __future__ import annotations

from dataclasses import replace

from attnaudit.capture.heads import Heads
from attnaudit.theories.fitting import FittedTheory, by_row
from attnaudit.theories.linear_fit import LinearFit
from attnaudit.theories.planting import weights_of_heads
from attnaudit.theories.regression import Features


def keys_by_row(heads: Heads) -> Features:
    """The keys, input by input."""
    return by_row(heads.key, heads)


class KeysLinear(FittedTheory):
    """V = KW + b with one W and b per head, for all inputs.

    A head attends by keys and passes on values. Both are projections of the same inputs, so a part of any values is a
    linear map of the keys: as much as of any random projection of the inputs that is as wide, which is the null. The
    theory says that it is all of them. Held-out variance that the keys do not explain refutes it.

    Hopfield networks (Ramsauer et al. 2021, section 2) have V = KW by definition: values are stored patterns, mapped.
    """

    name = "keys-linear"
    text = "a linear map of the head's own keys (as in Ramsauer et al. 2021)"
    nulls = ("random_keys", "rotated")
    context = ("other_keys", "random_projection")

    def fitting(self) -> LinearFit:
        """Least squares of values on keys."""
        return LinearFit(keys_by_row)

    def planted(self, heads: Heads, seed: int) -> Heads:
        """V = KW* with W* ~ N(0, 1); outputs are not looked at, and stay."""
        weights = weights_of_heads(heads, (heads.dim, heads.value.shape[-1]), f"{seed}/{self.name}")
        return replace(heads, value=heads.key.double() @ weights)
