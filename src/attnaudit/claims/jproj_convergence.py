"""Training makes attention outputs projections, which a falling J_proj is said to show."""

from __future__ import annotations

from collections.abc import Sequence

from attnaudit.claims.claim import Claim, Terms
from attnaudit.claims.meanings import RecordKind
from attnaudit.records.training import TrainingRun
from attnaudit.records.verdict import Finding, Verdict, VerdictWord

_ERROR, _OUTPUT, _PHI, _ABOVE = "projection_error_mae", "output_norm2", "phi_norm2", "output_above_phi"
#: Up to this share of tokens may be too long for a projection, by rounding or chance.
_FEW = 0.05
#: The least share of ‖φ(q)‖² that a projection must explain: an output that vanishes explains nothing.
_MOST = 0.5


def _judge(trainings: Sequence[TrainingRun], terms: Terms) -> list[Verdict]:
    return [_verdict(training) for training in trainings if training.is_monitored]


def _verdict(training: TrainingRun) -> Verdict:
    ends = _ends(training)
    if ends is None:
        reason = "the monitor lacks numbers of a first or of a later step"
        return Verdict(CLAIM.name, training.name, VerdictWord.UNDECIDED, Finding.NOT_MEASURED, reason)
    first, last = ends
    explained = [1 - end[_ERROR] / end[_PHI] for end in ends]
    if last[_ABOVE] <= _FEW and explained[1] > max(explained[0], _MOST):
        word, finding = VerdictWord.SUPPORTED, Finding.SHOWN
    elif last[_ABOVE] > 0.5:
        word, finding = VerdictWord.REFUTED, Finding.IMPOSSIBLE
    else:
        word, finding = VerdictWord.UNDECIDED, Finding.IN_BETWEEN
    course = " ".join(f"{name} {first[m]:.3g} → {last[m]:.3g}," for name, m in (("J", _ERROR), ("‖h‖²", _OUTPUT)))
    reason = f"{course} and ‖h‖² > ‖φ(q)‖² for {last[_ABOVE]:.1%} of tokens at the end ({first[_ABOVE]:.1%} at first)"
    return Verdict(CLAIM.name, training.name, word, finding, reason)


def _ends(training: TrainingRun) -> tuple[dict[str, float], dict[str, float]] | None:
    """Means over batches, layers and heads at the first and the last measured step; None unless both are complete."""
    rows = training.batch_means((_ERROR, _OUTPUT, _PHI, _ABOVE))
    means = rows.group_by(["step", "measure"], use_threads=False).aggregate([("value", "mean")]).to_pylist()
    steps = sorted({row["step"] for row in means})
    first, last = (
        {row["measure"]: row["value_mean"] for row in means if row["step"] == step} for step in (steps[0], steps[-1])
    )
    complete = None not in first.values() and None not in last.values()
    return (first, last) if complete and len(steps) > 1 else None


CLAIM = Claim(
    name="jproj-convergence",
    statement="Training lowers the projection error J_proj: attention outputs become projections on principal axes.",
    citation="Teo & Nguyen 2024, section 2.2 and appendix C; doubted by Sarıtaş & Yıldız 2025, Figures 1 and 4",
    formula="J = mean |‖φ(q_i)‖² - ‖h_i‖²|; a projection h of φ(q) on unit axes has ‖h‖² ≤ ‖φ(q)‖²",
    rule=(
        "Supported if at most 5 % of tokens have ‖h‖² > ‖φ(q)‖², which is impossible for a projection, and the share "
        "1 - J/‖φ(q)‖² that outputs explain has grown to more than half; refuted if most tokens have ‖h‖² > ‖φ(q)‖². "
        "J and ‖h‖² at the first and the last step show where a change of J comes from."
    ),
    decided_by=(_ABOVE, _ERROR),
    shown=(_OUTPUT, _PHI),
    reads=(RecordKind.TRAINING,),
    decide=_judge,
    needs="a training with a monitor, e.g. attnaudit train vit-small-cifar --set monitor.images=128",
)
