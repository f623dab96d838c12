import jaxtyping
import pytest
import torch

from attnaudit.errors import UsageError
from attnaudit.measures import DEFAULT_MEASURES, MEASURES, REFERENCES, Measure, Reference, Role, select
from attnaudit.theories import KernelPCA

MINE = Measure("mine", "the size of the values", lambda at: at.heads.value.norm(dim=(1, 2)))
ZERO = Reference("zero", "no values", Role.NULL, lambda given: torch.zeros_like(given.heads.value))


class Own:
    name, text = "own", "values are keys"

    def predict(self, heads, spectrum, protocol):
        raise NotImplementedError


def test_names_become_objects_in_order():
    selection = select(measures=["procrustes", "linear_cka"], references=["planted", "gaussian"])
    assert selection.measures == (MEASURES["procrustes"], MEASURES["linear_cka"])
    assert selection.references == (REFERENCES["planted"], REFERENCES["gaussian"])
    assert [theory.name for theory in selection.theories] == ["kpca"]


def test_what_is_not_named_is_the_default():
    assert [measure.name for measure in select().measures] == list(DEFAULT_MEASURES)
    assert select().references == ()


def test_objects_of_ones_own_are_taken_as_they_are_and_known_by_their_names():
    theory = Own()
    selection = select(
        measures=["procrustes", MINE], references=[ZERO, "planted"], theories=["kpca", "own", theory], seed=3
    )
    assert selection.measures[1] is MINE
    assert selection.references[0] is ZERO
    assert selection.theories[1:] == (theory,)
    assert selection.own == (MINE, theory, ZERO)
    assert selection.identity == {
        "protocol": "exact",
        "measures": ["procrustes", "mine"],
        "theories": ["kpca", "own"],
        "references": ["zero", "planted"],
        "repeats": 1,
        "seed": 3,
    }


def test_an_object_of_the_package_is_the_same_as_its_name():
    assert select(measures=[MEASURES["procrustes"], "procrustes"]).measures == (MEASURES["procrustes"],)
    assert select(measures=[MEASURES["procrustes"]]).own == ()


def test_the_theory_of_primal_layers_goes_without_saying():
    assert [theory.name for theory in select(theories=["ksvd-primal", "kpca"]).theories] == ["kpca"]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"measures": ["vibes"]}, "measure 'vibes'"),
        ({"theories": ["astrology"]}, "theory 'astrology'"),
        ({"references": ["placebo"]}, "reference 'placebo'"),
        ({"measures": [Measure("procrustes", "another", MINE.function)]}, "measure called 'procrustes'"),
        ({"measures": [MINE, Measure("mine", "another", MINE.function)]}, "measure called 'mine'"),
        ({"references": [Reference("planted", "another", Role.IDEAL)]}, "reference called 'planted'"),
        ({"theories": [KernelPCA()]}, "theory called 'kpca'"),
        ({"repeats": 0}, "got 0"),
        ({"theories": ["ksvd-primal"]}, "at least one theory"),
    ],
)
def test_what_cannot_be_selected_is_named(more, named):
    with pytest.raises(UsageError, match=named):
        select(**more)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"measures": [3]}, "Measure, got 3"),
        ({"measures": [ZERO]}, "Measure, got Reference"),
        ({"references": [MINE]}, "Reference, got Measure"),
        ({"theories": [object()]}, "Theory, got <object"),
    ],
)
def test_an_object_of_another_kind_is_named(more, named, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # the types of arguments are not checked for users
    with pytest.raises(UsageError, match=named):
        select(**more)
