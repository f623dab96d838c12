"""The guard of `benchmarks/speed_guard.py` sees what got slower, and nothing else."""

from benchmarks.speed_guard import WHOLE, Ratio, slower_stages

RECORDED = {
    WHOLE: Ratio(10.0, 0.02),
    "eigen-solve": Ratio(4.0, 0.05),
    "page, once": Ratio(2.0, 0.5),
    "tiny": Ratio(0.01, 0),
}


def stages(**changed):
    return [loss.stage for loss in slower_stages(RECORDED, {**RECORDED, **changed})]


def test_nothing_changed_is_nothing_slower():
    assert stages() == []


def test_a_stage_that_takes_longer_is_named():
    assert stages(**{"eigen-solve": Ratio(5.0, 0.05)}) == ["eigen-solve"]


def test_a_stage_that_takes_less_is_not():
    assert stages(**{"eigen-solve": Ratio(1.0, 0.05)}) == []


def test_noise_of_either_record_is_allowed():
    assert stages(**{"page, once": Ratio(2.9, 0.0)}) == []
    assert stages(**{"eigen-solve": Ratio(5.0, 0.3)}) == []
    assert stages(**{"page, once": Ratio(3.1, 0.0)}) == ["page, once"]


def test_small_stages_may_double():
    assert stages(tiny=Ratio(0.05, 0.0)) == []


def test_what_is_around_the_engine_is_compared_with_all_of_it():
    recorded = {WHOLE: Ratio(1.0, 0.0), "page, once": Ratio(900.0, 0.0), "load, once": Ratio(5.0, 0.0)}
    found = {**recorded, "load, once": Ratio(10.0, 0.0)}
    assert slower_stages(recorded, found) == []
    assert [loss.stage for loss in slower_stages(recorded, {**found, "page, once": Ratio(1100.0, 0.0)})] == [
        "page, once"
    ]


def test_a_new_stage_is_a_loss():
    assert stages(certificate=Ratio(1.0, 0.0)) == ["certificate"]


def test_the_largest_loss_comes_first():
    found = stages(**{WHOLE: Ratio(14.0, 0.0), "eigen-solve": Ratio(7.0, 0.0), "certificate": Ratio(1.0, 0.0)})
    assert found == [WHOLE, "eigen-solve", "certificate"]


def test_noise_is_the_largest_deviation_from_the_median():
    assert Ratio.of([1.0, 2.0, 3.0]) == Ratio(2.0, 0.5)
    assert Ratio.of([0.0, 0.0]) == Ratio(0.0, 0.0)
