"""`attnaudit gaussian digits`: compare heads trained on real data with PCA."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from attnaudit.cli import options
from attnaudit.cli.console import say
from attnaudit.cli.gaussian.laboratory import Out, Steps, at_work, deliver


def digits(
    ranks: Annotated[str, typer.Option(help="Ranks of the heads.")] = "1,2,3,5,7,10",
    length: Annotated[int, typer.Option(help="Tokens per prompt, for the softmax head.")] = 128,
    steps: Steps = 600,
    seed: options.Seed = 0,
    out: Out = None,
    json: options.Json = False,
) -> None:
    """Compare heads trained on scikit-learn's digits with PCA, and the time both take.

    Examples:
        attnaudit gaussian digits
    """
    import torch

    from attnaudit.extras import optional
    from attnaudit.gaussian import AttentionPCA
    from attnaudit.gaussian.checks import check_length
    from attnaudit.gaussian.experiments.findings import Findings, TheoryCheck
    from attnaudit.gaussian.experiments.real_data import against_pca
    from attnaudit.gaussian.training import HeadRecipe
    from attnaudit.report.gaussian_figures import variance_figure
    from attnaudit.sources.matrices import digits as digit_rows

    check_length(length)
    chosen, rows = options.whole_numbers(ranks, "--ranks"), digit_rows()
    with at_work("training") as progress:
        found = against_pca(
            torch.tensor(rows), chosen, length=length, recipe=HeadRecipe(steps=steps), seed=seed, progress=progress
        )
    rank = max(chosen)
    pca = optional("sklearn.decomposition", "sklearn", "Comparing with PCA").PCA(rank, svd_solver="full")
    expected, pca_time = _fit(pca, rows)
    explained, attention_time = _fit(AttentionPCA(rank, random_state=seed), rows)
    name = f"AttentionPCA({rank}): explained variance"
    comparison = TheoryCheck(name, expected, explained, note="theory: scikit-learn's PCA")
    findings = Findings((*found.checks, comparison), (), found.records)
    deliver(
        "digits",
        f"Digits, {rows.shape[0]} x {rows.shape[1]}, seed {seed}",
        findings,
        lambda paths: variance_figure(findings.records, paths),
        out,
        json,
    )
    say(f"Time to fit {rank} components: scikit-learn's PCA {pca_time:.3f} s, AttentionPCA {attention_time:.3f} s.")


def _fit(estimator: Any, rows: Any) -> tuple[float, float]:
    """The share of variance that an estimator explains, and the seconds its fit took."""
    begin = time.perf_counter()
    explained = float(estimator.fit(rows).explained_variance_ratio_.sum())
    return explained, time.perf_counter() - begin
