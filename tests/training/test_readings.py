"""What is read off the rows of a step, in words."""

import logging

from attnaudit.training import Monitor
from tests.training.networks import batch, network


def test_a_line_is_told_or_logged(caplog):
    lines = []
    Monitor(network(), {"train": batch(), "test": batch(seed=2)}, tell=lines.append).measure(1500)
    (line,) = lines
    assert line.startswith("step 1,500  train: J ")
    for part in ("‖φ‖²", "‖h‖²", "kernel PCA explains", "0 is chance, 1 the claim", "|  test: J "):
        assert part in line
    with caplog.at_level(logging.INFO, logger="attnaudit.training"):
        Monitor(network(), batch(), scores=0).measure(0)
    assert [record.name for record in caplog.records] == ["attnaudit.training"]
    assert "alignment" not in caplog.text


def test_heads_with_too_few_tokens_are_said_to_decide_nothing():
    lines = []
    Monitor(network(), batch()[:, :6], tell=lines.append).measure(0)
    assert "alignment not identifiable" in lines[0]
