"""Signs of gradient masking: an attack that fails because gradients are useless, not because the model is robust.

The signs are those of Athalye, Carlini & Wagner (2018, section 3.1): one step beats many, black-box attacks beat
white-box ones, larger balls do not help, and random search finds what gradients do not. In addition we compare with
AutoAttack, and look at the loss along the gradient itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special

from attnaudit.records.evaluation import Condition, ConditionKind, MaskingCheck, epsilon_text
from attnaudit.robustness.conditions import EVERYTHING, GRADIENT, TRANSFER
from attnaudit.robustness.table import Results

_WHITE_BOX = "pgd"
#: Attacks that must not beat the white-box attack, and the names of the checks.
_WEAKER = {
    "fgsm": "one step is not stronger than many",
    "noise": "noise is not stronger than the gradient",
    "square": "random squares are not stronger than the gradient",
    "spsa": "guessed gradients are not stronger than the gradient",
    TRANSFER: "images made for the twin are not stronger than its own",
}
_STRONGEST = "autoattack"
#: The accuracy that PGD may leave beyond AutoAttack, and at ε = 1/2; how often the loss must rise.
_GAP, _LEFT, _RISES = 0.05, 0.01, 0.9
_LEVEL = 0.05

#: (ε, which images are correct under one attack, which under PGD).
Pairs = Sequence[tuple[float, NDArray[np.bool_], NDArray[np.bool_]]]


def masking_checks(results: Results, model: str, conditions: Sequence[Condition]) -> list[MaskingCheck]:
    """All checks of a model; empty if it was not attacked by PGD."""
    attacks = {(c.name, c.strength): c for c in conditions if c.kind is ConditionKind.ATTACK}
    white = {strength: c for (name, strength), c in attacks.items() if name == _WHITE_BOX}
    if not white:
        return []

    right = partial(results.right, model)

    def pairs(name: str) -> Pairs:
        """(ε, correct under this attack, correct under PGD) for all ε at which both were run."""
        return [(e, right(attacks[name, e]), right(own)) for e, own in white.items() if (name, e) in attacks]

    checks = [_not_stronger(model, words, name, pairs(name)) for name, words in _WEAKER.items()]
    checks.append(_agrees(model, pairs(_STRONGEST)))
    checks.append(_falls(model, [(strength, right(own)) for strength, own in sorted(white.items())]))
    for condition, judge in ((EVERYTHING, _nothing_left), (GRADIENT, _rises)):
        if condition in conditions:
            checks.append(judge(model, right(condition)))
    return checks


def _not_stronger(model: str, words: str, name: str, pairs: Pairs) -> MaskingCheck:
    """Exact sign test on the images that only one of the two attacks fools, at the ε that is worst for PGD.

    p is that of the worst of all ε (Bonferroni), so that more of them do not make a failure more probable.
    """
    if not pairs:
        return MaskingCheck(model, words, f"{name} was not run", None)
    chances = {epsilon: (_chance(weaker, white), weaker.mean(), white.mean()) for epsilon, weaker, white in pairs}
    worst = min(chances, key=lambda epsilon: chances[epsilon][0])
    chance, weaker_left, white_left = chances[worst]
    chance = min(1.0, chance * len(pairs))
    left = f"{name} leaves {weaker_left:.1%}, {_WHITE_BOX} {white_left:.1%}"
    finding = f"{left} at ε = {epsilon_text(worst)} (p = {chance:.2g})"
    return MaskingCheck(model, words, finding, chance >= _LEVEL)


def _chance(less: NDArray[np.bool_], more: NDArray[np.bool_]) -> float:
    """Sign test: the probability of so many images that only `more` gets right, if both are equally good."""
    only_more, only_less = int((more & ~less).sum()), int((less & ~more).sum())
    return float(special.bdtrc(only_more - 1, only_more + only_less, 0.5)) if only_more else 1.0


def _agrees(model: str, pairs: Pairs) -> MaskingCheck:
    """AutoAttack may leave an image that PGD, by another random start, does not: no more than by chance."""
    words = "AutoAttack leaves no more than PGD, and hardly less"
    if not pairs:
        return MaskingCheck(model, words, f"{_STRONGEST} was not run", None)
    by_gap = sorted(pairs, key=lambda pair: -abs(pair[2].mean() - pair[1].mean()))
    failing = [
        (epsilon, strong, white)
        for epsilon, strong, white in by_gap
        if white.mean() - strong.mean() > _GAP or _chance(white, strong) * len(pairs) < _LEVEL
    ]
    epsilon, strong, white = (failing or by_gap)[0]
    finding = f"{_STRONGEST} leaves {strong.mean():.1%}, {_WHITE_BOX} {white.mean():.1%} at ε = {epsilon_text(epsilon)}"
    return MaskingCheck(model, words, finding, not failing)


def _falls(model: str, curve: Sequence[tuple[float, NDArray[np.bool_]]]) -> MaskingCheck:
    """Sign test on neighbouring ε, as accuracy may rise with ε by chance."""
    words = "a larger ε leaves less"
    if len(curve) < 2:
        return MaskingCheck(model, words, "only one ε was run", None)
    level = _LEVEL / (len(curve) - 1)
    passed = all(_chance(before, after) >= level for (_, before), (_, after) in pairwise(curve))
    finding = ", ".join(f"{right.mean():.1%} at {epsilon_text(epsilon)}" for epsilon, right in curve)
    return MaskingCheck(model, words, finding, passed)


def _nothing_left(model: str, right: NDArray[np.bool_]) -> MaskingCheck:
    finding = f"{right.mean():.1%} at ε = {epsilon_text(EVERYTHING.strength)}, {EVERYTHING.steps} steps of {_WHITE_BOX}"
    return MaskingCheck(model, "a ball that holds plain grey leaves nothing", finding, bool(right.mean() <= _LEFT))


def _rises(model: str, rises: NDArray[np.bool_]) -> MaskingCheck:
    finding = f"for {rises.mean():.1%} of images, at {epsilon_text(GRADIENT.strength)}"
    return MaskingCheck(
        model, "the loss rises along the gradient, more than along noise", finding, bool(rises.mean() >= _RISES)
    )
