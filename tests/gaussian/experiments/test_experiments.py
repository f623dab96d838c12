"""Small versions of the experiments: what they report. That a seed repeats them is tested on the command line."""

import pytest
import torch

from attnaudit.errors import ShapeError, UsageError
from attnaudit.gaussian import HeadRecipe, spiked_scale
from attnaudit.gaussian.experiments.align import align
from attnaudit.gaussian.experiments.finite_prompt import finite_prompt_error
from attnaudit.gaussian.experiments.in_context import in_context
from attnaudit.gaussian.experiments.landscape import CRITICAL, landscape
from attnaudit.gaussian.experiments.real_data import against_pca
from tests.gaussian.setting import harmonic

SIGMA = harmonic(4)


def silent(done, total):
    assert 0 <= done <= total


def small_in_context(theta=2.0, degrees=10, **more):
    settings = {"runs": 2, "recipe": HeadRecipe(steps=60, prompts=16), "task_numbers": (1, 2), "recovery_dim": 10,
                "recovery_degrees": (20,), "repeats": 2, "seed": 0, "progress": silent}  # fmt: skip
    return in_context(5, theta, degrees, 8, **(settings | more))


def small_finite_prompt(**more):
    settings = {"repeats": 20, "prompts": 100, "prompt_length": 8, "seed": 0, "progress": silent}
    return finite_prompt_error(SIGMA, (32, 128), **(settings | more))


def test_another_seed_is_another_draw():
    first, second = (landscape(SIGMA, 8, (1, 2), seed=seed, progress=silent) for seed in (0, 1))
    assert first.checks != second.checks


def test_align_covers_both_kernels_and_both_controls():
    found = align(SIGMA, 8, runs=2, recipe=HeadRecipe(steps=150, prompts=128), seed=0, progress=silent)
    assert {trial.subject for trial in found.trials} == {
        f"{kernel}, {data}" for kernel in ("linear", "softmax") for data in ("gaussian", "isotropic", "skewed")
    }
    scored = [check for check in found.checks if check.z is not None]
    assert len(scored) == 4
    assert all(abs(check.z) < 5 for check in scored)
    assert all(check.note for check in found.checks if "cos(μ" in check.quantity)


def test_the_landscape_shows_the_points_of_its_plane_with_both_signs():
    found = landscape(SIGMA, None, (1, 3), seed=1, progress=silent)
    kinds = [record.kind for record in found.records if record.what == CRITICAL]
    assert sorted(kinds) == ["maximum", "minimum", "minimum", "saddle", "saddle"]
    assert all(abs(check.z) < 4 for check in found.checks)
    assert "2 negative" in found.checks[-1].note


def test_finite_prompts_report_the_slope_and_the_identity():
    found = small_finite_prompt()
    names = [check.quantity for check in found.checks]
    assert any("slope" in name for name in names)
    assert found.checks[0].measured < 1e-9
    assert {trial.measure for trial in found.trials} == {"sampling_rate", "alignment"}


def test_in_context_predicts_nothing_for_the_softmax_and_says_so():
    softmax = [
        check for check in small_in_context().checks if check.quantity.startswith("softmax") and "α²" in check.quantity
    ]
    assert softmax[0].theory is None
    assert "no closed form" in softmax[0].note


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: small_in_context(theta=-1.0), UsageError, "θ .* got -1"),
        (lambda: small_in_context(degrees=0), UsageError, "n .* got 0"),
        (lambda: small_in_context(recovery_degrees=(0,)), UsageError, "n .* got 0"),
        (lambda: small_in_context(task_numbers=(0,)), UsageError, r"tasks=\[0\]"),
        (lambda: small_finite_prompt(prompt_length=1), UsageError, "length .* got 1"),
        (lambda: small_finite_prompt(repeats=5), UsageError, "20 repeats.* 5"),
        (lambda: landscape(SIGMA, None, (1, 9), seed=0, progress=silent), UsageError, "got 9"),
        (lambda: landscape(SIGMA, None, (2, 2), seed=0, progress=silent), UsageError, "got 2 twice"),
        (lambda: against_pca(torch.ones(9, 3).double(), (4,), length=8, recipe=HeadRecipe(), seed=0, progress=silent),
         UsageError, "rank .* got 4"),
        (lambda: against_pca(torch.ones(1, 3).double(), (1,), length=8, recipe=HeadRecipe(), seed=0, progress=silent),
         ShapeError, r"\(1, 3\)"),
    ],
)  # fmt: skip
def test_bad_settings_are_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_isotropic_covariances_have_no_finite_prompt_error():
    with pytest.raises(UsageError, match="eigenvalues are equal"):
        finite_prompt_error(spiked_scale(torch.ones(3).double(), 0.0), (32, 64), repeats=20, prompts=10,
                            prompt_length=8, seed=0, progress=silent)  # fmt: skip
