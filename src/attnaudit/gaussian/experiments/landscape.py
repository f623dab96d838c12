"""The risk on the plane of two eigenvectors, with its critical points and paths of gradient flow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from attnaudit.errors import UsageError
from attnaudit.gaussian.covariance import principal_axes
from attnaudit.gaussian.estimate import Estimate, estimate, simulated_risk
from attnaudit.gaussian.experiments.findings import Findings, Progress, TheoryCheck, seeded
from attnaudit.gaussian.head import Kernel
from attnaudit.gaussian.landscape import CriticalPoint, critical_points
from attnaudit.gaussian.risk import Covariance, finite_prompt, infinite_prompt
from attnaudit.gaussian.tokens import GaussianTokens
from attnaudit.gaussian.training import descend

_GRID = 61
_STARTS = 12
_FLOW_STEPS = 800
_DRAWS = 200_000
_PROMPTS = 20_000

SURFACE, PATH, CRITICAL = "surface", "path", "critical"


@dataclass(frozen=True)
class LandscapeRecord:
    """A point of the plane: on the grid (`surface`), on `path` number `run` of the flow, or a `critical` point."""

    what: str
    run: int
    x: float
    y: float
    risk: float
    kind: str


def landscape(
    covariance: Covariance, length: int | None, axes: tuple[int, int], *, seed: int, progress: Progress
) -> Findings:
    """The risk on the plane of two eigenvectors, counted from 1; `length` None is the infinite prompt."""
    eigenvalues, vectors = principal_axes(covariance)
    for axis in axes:
        if not 1 <= axis <= len(eigenvalues):
            raise UsageError(f"An axis must be between 1 and the dimension {len(eigenvalues)}, got {axis}.")
    if axes[0] == axes[1]:
        raise UsageError(f"A plane needs two different axes, got {axes[0]} twice.")
    generator = seeded(seed, str(covariance.device))
    risk = infinite_prompt() if length is None else finite_prompt(length)
    plane = vectors[:, [axis - 1 for axis in axes]]
    reach = 1.5 / float(eigenvalues[max(axes) - 1]) ** 0.5
    line = torch.linspace(-reach, reach, _GRID, dtype=covariance.dtype, device=covariance.device)
    flat = torch.stack(torch.meshgrid(line, line, indexing="xy"), dim=-1).reshape(-1, 2)
    values = risk((flat @ plane.mT)[..., None], covariance)
    records = [
        LandscapeRecord(SURFACE, 0, x, y, value, "")
        for (x, y), value in zip(flat.tolist(), values.tolist(), strict=True)
    ]
    angles = torch.arange(_STARTS, dtype=line.dtype, device=line.device) * 2 * math.pi / _STARTS + 0.1
    own = torch.stack([eigenvalues[axis - 1] for axis in axes])
    ring = 1.4 * torch.stack([angles.cos(), angles.sin()], dim=1) / own.sqrt()
    paths = descend(risk, covariance, (ring @ plane.mT)[..., None], steps=_FLOW_STEPS, step=0.16, records=100)
    for weights in paths.weights:
        heights = risk(weights, covariance).tolist()
        places = (weights[..., 0] @ plane).tolist()
        records += [
            LandscapeRecord(PATH, run, x, y, height, "")
            for run, ((x, y), height) in enumerate(zip(places, heights, strict=True))
        ]
    checks: list[TheoryCheck] = []
    points = critical_points(risk, covariance)
    for done, point in enumerate(points):
        progress(done, len(points))
        # Axes are counted by eigenvector, critical points by eigenvalue: the two differ if an eigenvalue is repeated.
        inside = float((plane.mT @ point.point).norm() - point.point.norm()) > -1e-9
        if inside:
            checks += _checks(point, covariance, length, generator)
            for sign in (1, -1) if point.axis else (1,):
                x, y = (sign * (plane.mT @ point.point)).tolist()
                records.append(LandscapeRecord(CRITICAL, point.axis, x, y, point.risk, point.kind))
    progress(len(points), len(points))
    return Findings(tuple(checks), (), tuple(records))


def _checks(
    point: CriticalPoint, covariance: Covariance, length: int | None, generator: Generator
) -> list[TheoryCheck]:
    where = f"√(s/λ)·v, λ = {point.eigenvalue:.4g}" if point.axis else "0"
    negative, flat, positive = point.signature
    measured = _measured(point.point, covariance, length, generator)
    return [
        TheoryCheck(
            f"{point.kind} at {where}: risk",
            point.risk,
            measured.mean,
            measured.standard_error,
            note=f"curvatures: {negative} negative, {flat} zero, {positive} positive",
        )
    ]


def _measured(mu: Float[Tensor, "dim"], covariance: Covariance, length: int | None, generator: Generator) -> Estimate:
    source = GaussianTokens(covariance)
    if length is not None:
        return simulated_risk(Kernel.LINEAR, mu, source, length, _PROMPTS, generator)
    tokens = source.draw(_DRAWS, 1, generator)[:, 0]
    # With an infinite prompt, the head is the map x → Σμμᵀx.
    return estimate((tokens - torch.outer(tokens @ mu, covariance @ mu)).square().sum(dim=1))
