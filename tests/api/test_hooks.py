"""Every function that the clock of `bench` watches exists, and belongs to a stage with a place in the table."""

from attnaudit.api.hooks import PACKAGES, STAGES, hooks
from attnaudit.audit.stages import StageClock, watching
from attnaudit.measures import MEASURES


def test_every_stage_has_a_place():
    assert {hook.stage for hook in hooks()} - {None} == set(STAGES)


def test_every_hook_finds_its_function_and_gives_it_back():
    before = [(hook.function, hook.owner, hook.attribute) for hook in hooks()]
    with watching(StageClock(lambda: 0.0), PACKAGES, hooks()):
        assert all(measure.function.__wrapped__ for measure in MEASURES.values())
    assert [(hook.function, hook.owner, hook.attribute) for hook in hooks()] == before
