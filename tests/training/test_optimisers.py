"""Optimisers by name: what timm has not, or cannot make, is a sentence."""

import pytest

from attnaudit.errors import UsageError
from attnaudit.training.loop import train
from attnaudit.training.optimisers import check_optimiser
from attnaudit.training.recipe_file import read_recipe


@pytest.mark.parametrize("name", ["adamw", "sgd", "lookahead_adamw"])
def test_what_timm_has_is_taken(name):
    check_optimiser(name)


def test_an_optimiser_is_the_same_however_it_is_spelled(recipe_file):
    spelled, plain = (read_recipe(str(recipe_file), [f"optimiser.name={name}"]) for name in ("AdamW", "adamw"))
    assert spelled == plain


def test_an_unknown_optimiser_is_answered_with_near_names_before_anything_is_written(recipe_file, halves, tmp_path):
    with pytest.raises(UsageError, match="timm has no optimiser 'adamx': did you mean adamax, adam"):
        train(read_recipe(str(recipe_file), ["optimiser.name=adamx"]), halves, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(UsageError, match="timm has no optimiser 'qqq': adamw, lamb and sgd are among"):
        check_optimiser("qqq")


def test_an_optimiser_that_timm_cannot_make_here_says_why(monkeypatch):
    import timm.optim

    def refuse(*arguments, **named):
        raise AssertionError("CUDA required for APEX optimizers")

    monkeypatch.setattr(timm.optim, "create_optimizer_v2", refuse)
    with pytest.raises(UsageError, match=r"cannot make 'fusedadam' here \(CUDA required for APEX optimizers\)"):
        check_optimiser("fusedadam")
