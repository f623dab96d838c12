"""What classifiers of images and of sentences share in training."""

from math import exp, log1p

import pytest
import torch
from torch import nn

from attnaudit.sources.labelled import training_and_test
from attnaudit.training import read_recipe
from attnaudit.training.accuracy import classes_in_words, evaluate_classifier
from attnaudit.training.distributed import Ranks
from attnaudit.training.tasks import make_task
from tests.training.conftest import write_images


def test_classes_that_no_example_has_are_counted():
    assert classes_in_words(3, torch.tensor([2, 0, 1, 0]), "training image") == "3 classes"
    assert (
        classes_in_words(5, torch.tensor([4, 0, 4]), "training image")
        == "5 classes, 3 of them without a training image"
    )


def test_a_gap_in_the_class_numbers_is_said_before_the_training(data_set, recipe_file):
    write_images(data_set / "train.parquet", [0, 3] * 20)
    task = make_task(read_recipe(recipe_file), training_and_test(data_set))
    assert task.data_summary == ("40 training and 20 test images of 4 classes, 2 of them without a training image")


def test_loss_and_accuracy_are_means_over_examples_and_not_over_batches():
    """-ln softmax of the right one of two logits is ln(1 + eᵈ), where d is how far the other one is ahead."""
    logits, labels = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0], [0.0, 5.0]]), torch.tensor([0, 1, 1, 1])
    batches = zip(logits.split(3), labels.split(3), strict=True)
    score = evaluate_classifier(nn.Identity(), batches, "fp32", Ranks())
    assert score.loss == pytest.approx(sum(log1p(exp(ahead)) for ahead in (-2, -1, 3, -5)) / 4)
    assert (score.accuracy, score.examples) == (3 / 4, 4)
