"""Training makes attention outputs projections, which a falling J_proj is said to show."""

from __future__ import annotations

from collections.abc import Sequence

from attnaudit.claims.training import Training, TrainingClaim
from attnaudit.claims.verdict import Verdict, Word

_ERROR, _OUTPUT, _ABOVE = "projection_error_mae", "output_norm2", "output_above_phi"
#: Up to this share of tokens may be too long for a projection, by rounding or chance.
_FEW = 0.05


def _judge(trainings: Sequence[Training]) -> list[Verdict]:
    return [_verdict(training) for training in trainings if training.watched is not None]


def _verdict(training: Training) -> Verdict:
    first, last = _ends(training)
    falls = last[_ERROR] < first[_ERROR]
    if last[_ABOVE] <= _FEW and falls:
        word = Word.SUPPORTED
    else:
        word = Word.REFUTED if last[_ABOVE] > 0.5 else Word.INCONCLUSIVE
    course = " ".join(f"{name} {first[m]:.3g} → {last[m]:.3g}," for name, m in (("J", _ERROR), ("‖h‖²", _OUTPUT)))
    reason = f"{course} and ‖h‖² > ‖φ(q)‖² for {last[_ABOVE]:.1%} of tokens at the end ({first[_ABOVE]:.1%} at first)"
    return Verdict(CLAIM.name, training.course.name, word, reason)


def _ends(training: Training) -> tuple[dict[str, float], dict[str, float]]:
    """Means over batches, layers and heads at the first and the last measured step."""
    assert training.watched is not None
    rows = training.watched.batch_means((_ERROR, _OUTPUT, _ABOVE))
    means = rows.group_by(["step", "measure"], use_threads=False).aggregate([("value", "mean")]).to_pylist()
    steps = sorted({row["step"] for row in means})
    ends = [
        {row["measure"]: row["value_mean"] for row in means if row["step"] == step} for step in (steps[0], steps[-1])
    ]
    return ends[0], ends[1]


CLAIM = TrainingClaim(
    name="jproj-convergence",
    statement="Training lowers the projection error J_proj: attention outputs become projections on principal axes.",
    citation="Teo & Nguyen 2024, section 2.2 and appendix C; doubted by Sarıtaş & Yıldız 2025, Figures 1 and 4",
    formula="J = mean |‖φ(q_i)‖² - ‖h_i‖²|; a projection h of φ(q) on unit axes has ‖h‖² ≤ ‖φ(q)‖²",
    rule=(
        "Supported if J is lower at the end than at the start and at most 5 % of tokens have an output longer than "
        "what it is said to be a projection of, which no projection can be; refuted if most tokens have one. J and "
        "‖h‖² at both ends say where a change of J comes from."
    ),
    deciding=(_ABOVE, _ERROR),
    shown=(_OUTPUT,),
    judge=_judge,
    needs="a training with a monitor, e.g. attnaudit train vit-small-cifar --set monitor.images=128",
)
