"""The registry of attacks, with their norms and numbers of iterations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from attnaudit.errors import unknown
from attnaudit.protocol import Protocol
from attnaudit.robustness.attacks.apgd import apgd
from attnaudit.robustness.attacks.autoattack import autoattack
from attnaudit.robustness.attacks.cw import cw, smallest
from attnaudit.robustness.attacks.fgsm import fgsm
from attnaudit.robustness.attacks.noise import noise
from attnaudit.robustness.attacks.norms import Norm
from attnaudit.robustness.attacks.pgd import pgd
from attnaudit.robustness.attacks.problem import Problem
from attnaudit.robustness.attacks.sld import sld
from attnaudit.robustness.attacks.spsa import spsa
from attnaudit.robustness.attacks.square import square


@dataclass(frozen=True)
class Attack:
    """An attack and its settings.

    Args:
        name: the name on the command line and in results.
        text: a one-line description.
        run: (problem, ε, iterations) to adversarial images.
        norm: the distance that ε bounds; None if ε means something else, as for two attacks of the study.
        steps: the default number of iterations; None if the attack does not iterate.
        adaptive: whether it uses the model; if so, images that are already misclassified are not attacked.
        budget: the only ε it is run with, if it has a fixed one.
    """

    name: str
    text: str
    run: Callable[[Problem, float, int], Tensor]
    norm: Norm | None = Norm.MAX
    steps: int | None = None
    adaptive: bool = True
    budget: float | None = None

    def __call__(self, problem: Problem, epsilon: float, steps: int | None = None) -> Tensor:
        """Adversarial images, in the order of the originals."""
        if epsilon == 0:
            return problem.images
        return self.run(problem, epsilon, steps or self.steps or 1)


def _named(*attacks: Attack) -> dict[str, Attack]:
    return {attack.name: attack for attack in attacks}


_EXACT = _named(
    Attack("noise", "uniform noise", lambda p, e, n: noise(p, e), adaptive=False),
    Attack("fgsm", "one step along the sign of the gradient", lambda p, e, n: fgsm(p, e)),
    Attack("pgd", "projected gradient descent from a random start", lambda p, e, n: pgd(p, e, steps=n), steps=20),
    Attack("apgd", "the same, with an adaptive step", lambda p, e, n: apgd(p, e, steps=n), steps=100),
    Attack(
        "autoattack",
        "APGD, targeted APGD, targeted FAB and Square in turn",
        lambda p, e, n: autoattack(p, e, steps=n),
        steps=100,
    ),
    Attack("square", "random squares, black box", lambda p, e, n: square(p, e, steps=n), steps=5_000),
    Attack("spsa", "estimated gradients, black box", lambda p, e, n: spsa(p, e, steps=n), steps=40),
    Attack("sld", "sparse l1 descent", lambda p, e, n: sld(p, e, steps=n), Norm.MEAN, steps=20),
    Attack("cw", "Carlini & Wagner's smallest change", lambda p, e, n: cw(p, e, steps=n), Norm.RMS, steps=200),
)


def _study_cw(problem: Problem, epsilon: float, steps: int) -> Tensor:
    """CW with κ = ε and bounds 0 and 1, although the images are normalised: all values below the mean are clipped."""
    return smallest(problem.with_bounds(0.0, 1.0), steps=steps, rate=5e-3, confidence=epsilon)


def _study_sld(problem: Problem, epsilon: float, steps: int) -> Tensor:
    """Sparse descent with ε as the sum of absolute changes."""
    return sld(problem, epsilon / problem.size, steps=steps)


#: The settings of Teo & Nguyen's evaluation (2024), taken from their code: ε is on normalised pixels.
_PAPER = _named(
    Attack("noise", "uniform noise of 0.3", lambda p, e, n: noise(p, e), adaptive=False, budget=0.3),
    Attack("fgsm", "one step along the sign of the gradient", lambda p, e, n: fgsm(p, e)),
    Attack("pgd", "steps of 0.15 ε", lambda p, e, n: pgd(p, e, steps=n, relative_step=0.15), steps=20),
    Attack("spsa", "estimated gradients, ten steps", lambda p, e, n: spsa(p, e, steps=n), steps=10),
    Attack("sld", "sparse l1 descent, sum of changes 10", _study_sld, None, steps=20, budget=10.0),
    Attack("cw", "smallest change with confidence ε", _study_cw, None, steps=1_000),
)


def attacks(protocol: Protocol) -> dict[str, Attack]:
    """The attacks of a protocol, by name."""
    return _PAPER if protocol is Protocol.PAPER else _EXACT


def attack_named(name: str, protocol: Protocol) -> Attack:
    """The attack of this name.

    Raises:
        UsageError: the protocol has no attack of this name.
    """
    known = attacks(protocol)
    if name not in known:
        raise unknown("attack", name, known, about=f" (--protocol {protocol.value})")
    return known[name]
