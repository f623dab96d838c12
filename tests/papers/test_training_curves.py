import pytest

from attnaudit.papers.published_curves import EPOCHS, TRAININGS
from attnaudit.papers.training_curves import FIGURE1, FIGURE4, OURS, curves
from attnaudit.records.training import open_training
from tests.training_runs import COURSE, write_training


def published(width, measure, batch):
    return TRAININGS[width].curves[measure, batch].values


@pytest.fixture(params=[(width, batch) for width in TRAININGS for batch in ("train", "test")])
def norms(request):
    """J, ‖h‖² and ‖φ‖² of a published training on a batch, epoch by epoch."""
    return list(zip(*(published(request.param[0], measure, request.param[1]) for measure in FIGURE1), strict=True))


def test_published_errors_lie_between_difference_and_sum_of_the_published_norms(norms):
    for error, output, phi in norms:
        rounding = 1e-3 * max(output, phi)
        assert abs(phi - output) - rounding <= error <= phi + output + rounding


def test_published_errors_are_the_output_norm_to_half_a_percent_from_epoch_10_on(norms):
    for error, output, _ in norms[EPOCHS.index(10) :]:
        assert error == pytest.approx(output, rel=5e-3)


def test_published_phi_exceeds_the_output_only_in_early_epochs_of_vit_tiny():
    above = {
        (width, batch, epoch)
        for width in TRAININGS
        for batch in ("train", "test")
        for epoch, phi, output in zip(
            (*EPOCHS, "last"),
            published(width, "phi_norm2", batch),
            published(width, "output_norm2", batch),
            strict=True,
        )
        if phi > output
    }
    assert above == {(64, "train", 0), (64, "train", 1), (64, "test", 1)}


def test_every_published_training_has_every_series_at_every_epoch():
    for training in TRAININGS.values():
        assert set(training.curves) == {(m, b) for m in FIGURE1 + FIGURE4 for b in ("train", "test")}
        for curve in training.curves.values():
            epochs = [epoch for epoch, _ in curve.points]
            assert epochs[:5] == [1, 2, 11, 51, 101]
            assert epochs[5] in {128, 129, 135, 136}


def test_a_curve_is_the_mean_over_layers_and_heads_by_epoch(tmp_path):
    (drawn,) = curves([open_training(write_training(tmp_path / "run", epochs=(0, 10), layers=1, heads=3))], FIGURE1)
    own = {(r.measure, r.batch, r.epoch): r for r in drawn.records if r.source == OURS}
    assert len(own) == len(FIGURE1) * 2 * 2
    for (measure, batch, epoch), record in own.items():
        factor = 0.9 * (1.5 if batch == "test" else 1)  # heads 0, 1, 2 have 1, 0.9, 0.8
        assert record.value == pytest.approx(factor * COURSE[measure](epoch))
        assert (record.heads, record.rejected) == (3, 0)


def test_a_missing_number_is_counted_and_left_out(tmp_path):
    run = open_training(write_training(tmp_path / "run", epochs=(0, 1), layers=1, heads=3, lost=(1,)))
    (drawn,) = curves([run], ["phi_norm2"])
    lost = [r for r in drawn.records if r.source == OURS and r.epoch == 1 and r.batch == "train"]
    assert [(r.heads, r.rejected) for r in lost] == [(2, 1)]
    assert lost[0].value == pytest.approx(0.85 * COURSE["phi_norm2"](1))


@pytest.mark.parametrize(("dim", "name"), [(64, "ViT-Tiny"), (32, "DeiT-Tiny"), (16, None)])
def test_the_head_width_says_which_published_curve_is_marked(tmp_path, dim, name):
    (drawn,) = curves([open_training(write_training(tmp_path / "run", dim=dim, batches=("train",)))], FIGURE4)
    marked = [r for r in drawn.records if r.source != OURS]
    assert {r.source for r in marked} == ({f"published {name}"} if name else set())
    assert {r.batch for r in marked} <= {"train"}
    assert len(marked) == (len(FIGURE4) * 6 if name else 0)


def test_runs_of_one_recipe_are_told_apart_by_their_folders(tmp_path):
    paths = [write_training(tmp_path / place, name=name) for place, name in (("a", "x"), ("b", "y"), ("c", "x"))]
    assert [drawn.run for drawn in curves([open_training(p) for p in paths], FIGURE1)] == [
        f"x ({tmp_path / 'a'})",
        "y",
        f"x ({tmp_path / 'c'})",
    ]
