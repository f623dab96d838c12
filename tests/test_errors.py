"""Our errors survive pickling and say what to do."""

import pickle

import pytest

from attnaudit import errors
from attnaudit.extras import optional

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.AttnAuditError)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_survives_pickling(kind):
    again = pickle.loads(pickle.dumps(kind("what, where, what to do")))
    assert type(again) is kind
    assert str(again) == "what, where, what to do"


def test_a_missing_extra_is_named_with_its_install_line():
    with pytest.raises(errors.MissingExtraError, match=r"needs no_such_package.*pip install 'attnaudit\[robust\]'"):
        optional("no_such_package.part", "robust", "Attacking a model")


def test_an_unknown_name_is_shown_with_the_closest_and_all_known_names():
    error = errors.unknown("corruption", "fogg", ["fog", "snow"])
    assert isinstance(error, errors.UsageError)
    assert str(error) == "Unknown corruption 'fogg': did you mean fog? Known: fog, snow."
    assert str(errors.unknown("corruption", "x", ["fog", "snow"])) == "Unknown corruption 'x'. Known: fog, snow."


def test_a_long_list_of_names_is_not_printed():
    names = [f"optimiser{number}" for number in range(100)]
    text = str(errors.unknown("optimiser", "optimiser100", names, "attnaudit ls optimisers"))
    assert "did you mean optimiser10, optimiser1 or optimiser0? attnaudit ls optimisers lists all." in text
    assert text.count("optimiser") == 6  # the kind, the name, three suggestions and the listing


def test_a_name_of_a_family_suggests_its_first_members_alone():
    known = ["deit_tiny_patch16_224", "deit_tiny_distilled_patch16_224", "rdnet_tiny", "deit_small_patch16_224"]
    assert errors.similar("DeiT-tiny", known) == known[:2]


def test_no_name_suggests_nothing():
    assert errors.similar("", ["deit_tiny_patch16_224"]) == []
