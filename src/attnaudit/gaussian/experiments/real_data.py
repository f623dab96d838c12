"""Real data: the direction of a head of rank one and the variance explained by heads of rank k, against PCA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from attnaudit.errors import ShapeError, UsageError
from attnaudit.gaussian.covariance import principal_axes, second_moment
from attnaudit.gaussian.experiments.findings import Findings, Progress, TheoryCheck, seeded
from attnaudit.gaussian.head import Kernel
from attnaudit.gaussian.readout import cosine, explained_variance_ratio
from attnaudit.gaussian.risk import infinite_prompt
from attnaudit.gaussian.tokens import ResampledTokens
from attnaudit.gaussian.training import HeadRecipe, descend, random_start, train_on_fresh_prompts

#: Enough to separate directions whose variances differ by a few percent of the largest.
_STEPS, _STEP = 6000, 1.6


@dataclass(frozen=True)
class VarianceRecord:
    """The share of the variance in the first k components of PCA, and in the span of a trained head of rank k."""

    components: int
    pca: float
    attention: float


def against_pca(
    data: Float[Tensor, "rows dim"],
    ranks: Sequence[int],
    *,
    length: int,
    recipe: HeadRecipe,
    seed: int,
    progress: Progress,
) -> Findings:
    """Train linear heads of each rank on the closed form, and a softmax head on prompts drawn from the rows."""
    if data.ndim != 2 or len(data) < 2:
        raise ShapeError(f"Data must have shape (rows, dim) with ≥ 2 rows, got {tuple(data.shape)}.")
    for rank in ranks:
        if not 1 <= rank <= data.shape[1]:
            raise UsageError(f"A rank must be between 1 and the dimension {data.shape[1]}, got {rank}.")
    generator = seeded(seed, str(data.device))
    centred = data - data.mean(dim=0)
    centred = centred / centred.square().sum(dim=1).mean().sqrt()
    covariance = second_moment(centred)
    eigenvalues, vectors = principal_axes(covariance)
    total = len(ranks) + 2
    checks, records = [], []
    for done, rank in enumerate(sorted({1, *ranks})):
        progress(done, total)
        start = random_start(covariance, rank, generator, 0.5 / rank)
        trained = descend(infinite_prompt(), covariance, start, steps=_STEPS, step=_STEP, records=1).end
        pca = float(eigenvalues[:rank].sum() / eigenvalues.sum())
        found = float(explained_variance_ratio(trained, covariance))
        checks.append(TheoryCheck(f"explained variance of span(ΣW), k = {rank}", pca, found))
        records.append(VarianceRecord(rank, pca, found))
        if rank == 1:
            checks += _directions("linear", trained[:, 0], covariance, vectors[:, 0])
    # Softmax scores are ⟨Wᵀx, Wᵀx′⟩: for a parameter of order one, the leading variance of the data must be one.
    unit = centred / eigenvalues[0].sqrt()
    start = random_start(covariance / eigenvalues[0], 1, generator)
    softmax = train_on_fresh_prompts(Kernel.SOFTMAX, ResampledTokens(unit), length, start, generator, recipe)
    checks += _directions("softmax", softmax.end[:, 0], covariance, vectors[:, 0])
    progress(total, total)
    return Findings(tuple(checks), (), tuple(records))


def _directions(
    kernel: str, mu: Float[Tensor, "dim"], covariance: Float[Tensor, "dim dim"], first: Float[Tensor, "dim"]
) -> list[TheoryCheck]:
    unseen = "the risk hardly depends on directions of little variance: see Σμ"
    gaussian = "" if kernel == "linear" else "theory: for Gaussian data"
    return [
        TheoryCheck(f"{kernel}: |cos(Σμ, PC1)|", 1.0, float(cosine(covariance @ mu, first)), note=gaussian),
        TheoryCheck(f"{kernel}: |cos(μ, PC1)|", 1.0, float(cosine(mu, first)), note=unseen),
    ]
