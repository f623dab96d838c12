"""Claims about training: words from made-up courses whose answer is known."""

import math

import pytest

from attnaudit.claims.registry import CLAIMS, TRAINING_CLAIMS, claims_named
from attnaudit.claims.training import open_trainings
from attnaudit.claims.verdict import Word
from attnaudit.errors import RunFolderError, UsageError
from tests.training_runs import COURSE, write_course, write_training

JPROJ = TRAINING_CLAIMS["jproj-convergence"]
SCALED = TRAINING_CLAIMS["scaled-attention-converges-faster"]


def judged(claim, *paths):
    return claim.judge(open_trainings(paths))


@pytest.mark.parametrize(
    ("above", "grows", "word"),
    [(1.0, False, Word.REFUTED), (0.0, False, Word.SUPPORTED), (0.0, True, Word.INCONCLUSIVE),
     (0.2, False, Word.INCONCLUSIVE), (0.6, True, Word.REFUTED)],
)  # fmt: skip
def test_a_projection_is_shorter_than_what_it_projects_and_its_error_falls(tmp_path, above, grows, word):
    sign = 1 if grows else -1
    course = COURSE | {
        "output_above_phi": lambda epoch: above,
        "projection_error_mae": lambda epoch: math.exp(sign * epoch / 10),
    }
    (verdict,) = judged(JPROJ, write_training(tmp_path / "run", course=course, layers=1, heads=1, batches=("train",)))
    assert verdict.word is word
    assert f"{above:.1%} of tokens at the end" in verdict.reason


def test_a_training_without_a_monitor_says_nothing_of_projections(tmp_path):
    assert judged(JPROJ, write_course(tmp_path / "run", [0.5])) == []


def courses(tmp_path, gains, epochs=50, softmax_epochs=50, **more):
    """Softmax and scaled runs of as many seeds as there are gains; accuracy rises the same way in all."""
    paths = []
    for seed, gain in enumerate(gains):
        base = [0.3 + 0.01 * epoch + 0.02 * seed for epoch in range(softmax_epochs)]
        ahead = [0.3 + 0.01 * epoch + 0.02 * seed + gain for epoch in range(epochs)]
        paths.append(write_course(tmp_path / f"softmax-{seed}", base, seed=seed))
        options = {"form": "alpha"}
        paths.append(
            write_course(tmp_path / f"scaled-{seed}", ahead, seed=seed, attention="scaled", options=options, **more)
        )
    return paths


@pytest.mark.parametrize(
    ("gains", "word"),
    [
        ((0.02, 0.021, 0.019), Word.SUPPORTED),
        ((-0.02, -0.021, -0.019), Word.REFUTED),
        ((0.0001, -0.0001, 0.0), Word.INDISTINGUISHABLE),
        ((0.03, -0.03, 0.01), Word.INCONCLUSIVE),
        ((0.03,), Word.INCONCLUSIVE),
    ],
)
def test_faster_is_ahead_of_softmax_by_more_than_seeds_differ(tmp_path, gains, word):
    (verdict,) = judged(SCALED, *courses(tmp_path, gains))
    assert (verdict.model, verdict.word) == ("scaled, alpha", word)


def test_only_epochs_that_all_runs_have_are_compared(tmp_path):
    (verdict,) = judged(SCALED, *courses(tmp_path, (0.02, 0.02, 0.021), epochs=7))
    assert "epochs 1 to 7 is +2.03 points" in verdict.reason
    assert verdict.word is Word.SUPPORTED


def test_runs_of_another_recipe_are_not_compared(tmp_path):
    assert judged(SCALED, *courses(tmp_path, (0.02, 0.02), depth=3)) == []


def test_an_interval_is_wider_for_two_variants_than_for_one(tmp_path):
    paths = courses(tmp_path, (0.01, 0.02, 0.03))
    (alone,) = judged(SCALED, *paths)
    for seed in range(3):
        accuracies = [0.5] * 50
        paths.append(
            write_course(
                tmp_path / f"exact-{seed}", accuracies, seed=seed, attention="scaled", options={"form": "exact"}
            )
        )
    first, _ = judged(SCALED, *paths)
    assert alone.reason != first.reason


def test_an_audit_refuses_claims_about_training():
    assert not set(CLAIMS) & set(TRAINING_CLAIMS)
    with pytest.raises(UsageError, match="jproj-convergence is about training, not about a model: run attnaudit judge"):
        claims_named(["jproj-convergence"])


def test_a_broken_history_is_named(tmp_path):
    path = write_course(tmp_path / "run", [0.5])
    (path / "history.json").write_text("{")
    with pytest.raises(RunFolderError, match=r"history\.json is not readable"):
        open_trainings([path])


@pytest.mark.parametrize("claim", TRAINING_CLAIMS.values(), ids=lambda c: c.name)
def test_every_claim_says_where_it_comes_from_how_it_is_decided_and_what_it_needs(claim):
    assert claim.statement
    assert claim.citation
    assert claim.rule
    assert claim.needs
    assert claim.judged_by == "attnaudit judge RUN…"
