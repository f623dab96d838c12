"""The experiment with the regulariser in training: alignment of networks whose answer is known, and paired gains."""

import csv

import numpy as np
import pytest
import torch
from benchmarks import regulariser_experiment as experiment
from benchmarks.regulariser_experiment import LayerAlignment, Network

from attnaudit.attention import PCAPenalty
from attnaudit.attention.pca_penalty import directions_of
from attnaudit.records.architecture import Architecture
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.training.recipe_file import read_recipe

pytest.importorskip("timm")

WIDTH, HEADS = 24, 2


def images():
    return torch.randn(16, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def network(columns=None):
    """Of one layer; every head's queries and keys are these eigenvectors of its input, counted from the largest."""
    shape = Architecture(image_size=8, patch_size=2, width=WIDTH, depth=1, heads=HEADS)
    model = build_vision_transformer(shape, 0)
    if columns is not None:
        penalty = PCAPenalty(model)
        model(images())
        ((layer, tokens),) = penalty.inputs()
        chosen = torch.linalg.eigh(torch.cov(tokens.T)).eigenvectors.flip(1)[:, columns]
        sizes = torch.arange(chosen.shape[1], 0, -1)  # the first direction weighs most
        with torch.no_grad():
            directions_of(layer).copy_(sizes * chosen)
            directions_of(layer, "q").copy_(chosen)
    return model


def test_keys_that_are_the_leading_eigenvectors_score_one_and_are_attended():
    (found,) = experiment.alignments(network(range(WIDTH // HEADS)), images())
    assert found.explained == pytest.approx(1, abs=1e-5)
    assert found.attended == pytest.approx(1, abs=1e-5)


def test_untrained_keys_score_near_chance_and_the_last_eigenvectors_below():
    (untrained,) = experiment.alignments(network(), images())
    (least,) = experiment.alignments(network(range(WIDTH // HEADS, WIDTH)), images())
    assert abs(untrained.explained) < 0.3
    assert least.explained < -0.5
    assert least.attended < 1e-6


def networks():
    """The regulariser lowers every loss by 0.1, accuracy is higher by 0.02, `explained` by 0.4; seeds differ."""
    return [
        Network(
            weight,
            seed,
            tuple(seed + loss - 0.1 * weight - 0.001 * seed * weight for loss in (2.0, 1.0)),
            (0.2, 0.3 + 0.1 * seed + (0.02 + 0.001 * (seed - 1)) * weight),
            (
                LayerAlignment((0.5 + 0.01 * (seed - 1)) * weight, 0.1 + 0.001 * (seed - 1) * weight),
                LayerAlignment(0.3 * weight, 0.1),
            ),
        )
        for seed in range(3)
        for weight in (0.0, 1.0, -1.0)
    ]


def test_gains_are_paired_by_seed_and_a_lower_loss_is_a_gain():
    np.testing.assert_allclose(experiment.gains(networks(), 1.0, "loss at the end"), [0.1, 0.101, 0.102])
    np.testing.assert_allclose(experiment.gains(networks(), 1.0, "accuracy at the end"), [0.019, 0.02, 0.021])
    np.testing.assert_allclose(experiment.gains(networks(), -1.0, "explained"), [-0.395, -0.4, -0.405])


def test_the_table_has_a_word_for_every_gain_and_none_for_training_without():
    lines = experiment.table(networks()).splitlines()
    pulled, pushed = lines[-2:]
    assert pulled.startswith("| 1 ")
    assert pulled.count("supported (shown)") == 4
    assert pushed.count("refuted (a loss)") == 4
    assert pulled.count("refuted (no gain)") == pushed.count("refuted (no gain)") == 1  # `attended`, on average


def test_means_keep_their_sign():
    pushed = next(line for line in experiment.table(networks()).splitlines() if line.startswith("| -1 "))
    explained, _, loss = pushed.split(" | ")[1:4]
    assert explained.startswith("-0.400")
    assert loss.startswith("2.")


def test_rows_have_every_epoch_and_alignment_at_the_last(tmp_path):
    experiment.write_rows(networks(), tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9 * 2
    assert {row["epoch"] for row in rows if row["explained 1"]} == {"2"}


def test_the_recipe_is_of_a_network_in_which_every_layer_can_be_pulled():
    recipe = read_recipe(str(experiment.RECIPE), ["pca_weight=-1"])
    model = build_vision_transformer(recipe.model, 0)
    assert len(experiment.alignments(model, torch.randn(8, 3, 32, 32))) == recipe.model.depth
