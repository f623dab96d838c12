"""Training makes attention outputs projections, which a falling J_proj is said to show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from attnaudit.claims.claim import Claim, Terms
from attnaudit.claims.meanings import RecordKind
from attnaudit.display import told_apart
from attnaudit.records.training import TrainingRun
from attnaudit.records.verdict import Finding, Verdict, VerdictWord
from attnaudit.statistics import huge
from attnaudit.statistics.decisions import REJECTED_SHARE

_ERROR, _OUTPUT, _PHI, _ABOVE = "projection_error_mae", "output_norm2", "phi_norm2", "output_above_phi"
_MEASURES = (_ERROR, _OUTPUT, _PHI, _ABOVE)
#: Batch, layer and number of a head, and the numbers of each.
Head = tuple[str, int, int]
ByHead = Mapping[Head, Mapping[str, float]]
#: Up to this share of tokens may be too long for a projection, by rounding or chance.
_FEW = 0.05
#: The least share of ‖φ(q)‖² that a projection must explain: an output that vanishes explains nothing.
_MOST = 0.5


def _judge(trainings: Sequence[TrainingRun], terms: Terms) -> list[Verdict]:
    monitored = [training for training in trainings if training.is_monitored]
    names = told_apart([own.name for own in monitored], [str(own.path) for own in monitored])
    return [_verdict(training, name) for training, name in zip(monitored, names, strict=True)]


def _verdict(training: TrainingRun, name: str) -> Verdict:
    first_heads, last_heads, heads, steps = _ends(training)
    if steps < 2:
        return _not_measured(name, "the monitor lacks numbers of a first or of a later step")
    both = first_heads.keys() & last_heads.keys()
    if (lost := heads - len(both)) > REJECTED_SHARE * heads:
        return _not_measured(
            name, f"{lost:,} of {heads:,} heads of a batch lack a number at the first or the last step"
        )
    first, last = _means(first_heads, both), _means(last_heads, both)
    if not first[_PHI] or not last[_PHI]:
        return _not_measured(name, "‖φ(q)‖² is too small for float64")
    explained = [1 - end[_ERROR] / end[_PHI] for end in (first, last)]
    if last[_ABOVE] <= _FEW and explained[1] > max(explained[0], _MOST):
        word, finding = VerdictWord.SUPPORTED, Finding.SHOWN
    elif last[_ABOVE] > 0.5:
        word, finding = VerdictWord.REFUTED, Finding.IMPOSSIBLE
    else:
        word, finding = VerdictWord.UNDECIDED, Finding.IN_BETWEEN
    course = " ".join(f"{symbol} {first[m]:.3g} → {last[m]:.3g}," for symbol, m in (("J", _ERROR), ("‖h‖²", _OUTPUT)))
    reason = f"{course} and ‖h‖² > ‖φ(q)‖² for {last[_ABOVE]:.1%} of tokens at the end ({first[_ABOVE]:.1%} at first)"
    return Verdict(CLAIM.name, name, word, finding, reason)


def _not_measured(name: str, reason: str) -> Verdict:
    return Verdict(CLAIM.name, name, VerdictWord.UNDECIDED, Finding.NOT_MEASURED, reason)


def _ends(training: TrainingRun) -> tuple[ByHead, ByHead, int, int]:
    """Heads that have all numbers at the first and at the last measured step; how many heads and steps there are."""
    found: dict[int, dict[Head, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    heads = set()
    for row in training.batch_means(_MEASURES).to_pylist():
        head = row["input"], row["layer"], row["head"]
        heads.add(head)
        own = found[row["step"]][head]
        if row["value"] is not None:
            own[row["measure"]] = row["value"]
    first, last = (
        {head: own for head, own in found[step].items() if len(own) == len(_MEASURES)}
        for step in (min(found), max(found))
    )
    return first, last, len(heads), len(found)


def _means(by_head: ByHead, heads: Collection[Head]) -> dict[str, float]:
    """Over batches, layers and heads."""
    return {measure: huge.mean(np.array([by_head[head][measure] for head in sorted(heads)])) for measure in _MEASURES}


CLAIM = Claim(
    name="jproj-convergence",
    statement="Training lowers the projection error J_proj: attention outputs become projections on principal axes.",
    citation="Teo & Nguyen 2024, section 2.2 and appendix C; doubted by Sarıtaş & Yıldız 2025, Figures 1 and 4",
    formula="J = mean |‖φ(q_i)‖² - ‖h_i‖²|; a projection h of φ(q) on unit axes has ‖h‖² ≤ ‖φ(q)‖²",
    rule=(
        "Supported if at most 5 % of tokens have ‖h‖² > ‖φ(q)‖², which is impossible for a projection, and the share "
        "1 - J/‖φ(q)‖² that outputs explain has grown to more than half; refuted if most tokens have ‖h‖² > ‖φ(q)‖². "
        "Undecided if more than 5 % of heads lack a number of a batch at the first or the last step. J and ‖h‖² "
        "of the same heads at both show where a change of J comes from."
    ),
    decided_by=(_ABOVE, _ERROR),
    shown=(_OUTPUT, _PHI),
    reads=(RecordKind.TRAINING,),
    decide=_judge,
    needs="a training with a monitor, e.g. attnaudit train vit-small-cifar --set monitor.images=128",
)
