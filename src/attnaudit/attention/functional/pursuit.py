"""RPC-Attention: principal attention pursuit, a fixed number of steps that split the keys into L + S."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.attention.functional.clipping import clip
from attnaudit.attention.functional.dot_product import AttentionPass, Observer, softmax
from attnaudit.attention.functional.random_sparse import zeroed_at_random
from attnaudit.errors import ShapeError, UsageError, unknown
from attnaudit.numerics.masks import Mask, additive, merged_mask, visible_mean

#: The allowed values of the fields of a `Pursuit`.
ALLOWED = {
    "threshold": ("lam*mu", "lam/mu"),
    "mu_width": ("model", "head"),
    "dual_sign": (-1, 1),
    "sparse": ("outliers", "random"),
}


@dataclass(frozen=True)
class Pursuit:
    """The rules of the pursuit, which differ between paper and code, and the number of iterations.

    With m = mean|K| of a head and μ = width / (4·d·m), the shrinkage threshold τ is λ·μ or λ/μ:

    * `threshold="lam*mu", mu_width="model"` (the authors' code): τ = λ·H / (4m). Larger keys are clipped *more*.
    * `threshold="lam/mu", mu_width="head"` (the paper): τ = 4·λ·m, which scales with the keys.

    `dual_sign` is the sign of Y/μ in the step for L: -1 as published, +1 if the stated Lagrangian is minimised.
    `sparse` determines S: the part of every entry beyond τ (`outliers`), or, as a control, as many whole entries at
    `random` positions.
    """

    iterations: int = 4
    lam: float = 4.0
    threshold: str = "lam*mu"
    mu_width: str = "model"
    dual_sign: int = -1
    sparse: str = "outliers"

    def __post_init__(self) -> None:
        if not isinstance(self.iterations, int) or self.iterations < 1:
            raise UsageError(f"RPC-Attention's iterations must be a whole number ≥ 1, got {self.iterations!r}.")
        if not isinstance(self.lam, (int, float)) or not self.lam >= 0:
            raise UsageError(f"RPC-Attention's lam must be ≥ 0, got {self.lam}.")
        for name, values in ALLOWED.items():
            if getattr(self, name) not in values:
                raise unknown(f"RPC-Attention {name}", getattr(self, name), values)

    @classmethod
    def preset(cls, name: str, **changes: object) -> Pursuit:
        """A named entry of `PRESETS` with some fields changed; None leaves a field as it is."""
        if name not in PRESETS:
            raise unknown("RPC-Attention preset", name, PRESETS)
        given = {field: value for field, value in changes.items() if value is not None}
        return replace(PRESETS[name], **given)  # type: ignore[arg-type]

    def tau(
        self, key: Float[Tensor, "batch heads tokens dim"], mask: Mask | None, is_causal: bool
    ) -> Float[Tensor, "batch heads tokens_or_1 1"]:
        """The threshold τ of each head and input; under a mask, of each token, from the tokens it may see.

        With μ over the whole sequence, a causal model would see the size of later keys, and padding would count.
        """
        if math.isinf(self.lam):  # no threshold, and so no gradient through it
            return key.new_full((1, 1, 1, 1), torch.inf).expand(*key.shape[:2], 1, 1)
        with torch.autocast(key.device.type, enabled=False):
            size = visible_mean(key.abs().mean(dim=-1, keepdim=True), mask, is_causal)
        width = key.shape[1] if self.mu_width == "model" else 1
        mu = width / (4 * size.clamp_min(torch.finfo(size.dtype).tiny))
        return self.lam * mu if self.threshold == "lam*mu" else self.lam / mu


#: `code`: the authors' repository; `paper`: their equations; `admm`: ADMM for the problem the paper states.
PRESETS = {
    "code": Pursuit(),
    "paper": Pursuit(threshold="lam/mu", mu_width="head"),
    "admm": Pursuit(threshold="lam/mu", mu_width="head", dual_sign=1),
}


def rpc(
    key: Float[Tensor, "batch heads tokens dim"],
    value: Float[Tensor, "batch heads tokens value_dim"],
    *,
    iterations: int = 4,
    lam: float = 4.0,
    preset: str = "code",
    threshold: str | None = None,
    mu_width: str | None = None,
    dual_sign: int | None = None,
    sparse: str | None = None,
    query: Float[Tensor, "batch heads tokens dim"] | None = None,
    mask: Mask | None = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
    seed: int | None = 0,
) -> Float[Tensor, "batch heads tokens dim"]:
    """RPC-Attention: `pursue` with the rules of a preset, of which some may be overridden."""
    changes = {"threshold": threshold, "mu_width": mu_width, "dual_sign": dual_sign, "sparse": sparse}
    rule = Pursuit.preset(preset, iterations=iterations, lam=lam, **changes)
    return pursue(
        key, value, rule, query=query, mask=mask, is_causal=is_causal, dropout=dropout, scale=scale, seed=seed
    )


def pursue(
    key: Float[Tensor, "batch heads tokens dim"],
    value: Float[Tensor, "batch heads tokens value_dim"],
    rule: Pursuit,
    *,
    query: Float[Tensor, "batch heads tokens dim"] | None = None,
    mask: Mask | None = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
    seed: int | None = 0,
    observe: Observer | None = None,
) -> Float[Tensor, "batch heads tokens dim"]:
    """Return L after a number of steps of principal attention pursuit (Teo & Nguyen 2024, section 3.2).

    From L = U = 0, with U = Y/μ and h(Z) = softmax(ZZᵀ·scale) V instead of singular value thresholding:

        R = K - L + U,   S = R - clamp(R, -τ, τ),   Z = K - S + dual_sign·U,   L = h(Z),   U = U + K - L - S.

    With `query`, h(Z) = softmax(QZᵀ·scale) V (the paper's appendix E.10). Dropout acts on the last attention only. The
    published loop is a fixed-depth heuristic: nothing makes L, which lies in the space of V, approach K; and with true
    singular value thresholding its sign diverges, whereas +1 converges.

    With the rule `sparse="random"`, S = R at random positions, as many as the S above has, and 0 elsewhere; `seed` is
    that of the first step.

    Each step is one SDPA call; between steps the loop keeps L, U and one clipped matrix of the size of the keys, in
    float32 or wider.
    """
    if value.shape != key.shape:
        shapes = f"values {tuple(value.shape)} and keys {tuple(key.shape)}"
        raise ShapeError(f"RPC-Attention needs keys and values of one shape, got {shapes}.")
    exact = key.to(torch.promote_types(key.dtype, torch.float32))
    mask, is_causal = merged_mask(mask, is_causal, key.shape[-2])
    tau = rule.tau(exact, mask, is_causal)
    # SDPA would convert a boolean mask in every call, and keep each copy.
    mask = None if mask is None else additive(mask, value.dtype)

    def without_sparse(residual: Tensor, step: int) -> Tensor:
        clipped = clip(residual, tau)
        if rule.sparse == "outliers":
            return clipped
        return zeroed_at_random(residual, clipped != residual, mask, is_causal, None if seed is None else seed + step)

    residual, before = exact, torch.zeros((), dtype=exact.dtype, device=exact.device)
    kept = without_sparse(residual, 0)
    target = kept  # K - S of the first step, where L = U = 0
    for step in range(1, rule.iterations + 1):
        keys = target.to(value.dtype)
        low_rank = softmax(
            keys if query is None else query,
            keys,
            value,
            mask=mask,
            is_causal=is_causal,
            dropout=dropout if step == rule.iterations else 0.0,
            scale=scale,
        )
        if observe is not None:
            sparse = residual - kept
            step_pass = AttentionPass(keys if query is None else query, keys, mask, is_causal, scale, exact)
            observe(step_pass._replace(sparse=sparse, residual=exact - low_rank - sparse))
        if step < rule.iterations:
            # With C = R - S, the kept part of R, the dual update U + K - L - S is C + (previous L) - L, and K - S is
            # L - U + C: three matrices to keep instead of five.
            dual = kept + before - low_rank
            residual = exact - low_rank + dual
            kept = without_sparse(residual, step)
            target = torch.add(low_rank + kept, dual, alpha=rule.dual_sign - 1)
            before = low_rank
    return low_rank
