"""Errors of ours travel between processes and say what to do."""

import pickle

import pytest

from attnaudit import errors
from attnaudit.extras import optional

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.AttnAuditError)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_survives_the_way_out_of_a_worker(kind):
    again = pickle.loads(pickle.dumps(kind("what, where, what to do")))
    assert type(again) is kind
    assert str(again) == "what, where, what to do"


def test_a_missing_extra_is_named_with_its_install_line():
    with pytest.raises(errors.MissingExtraError, match=r"needs no_such_package.*pip install 'attnaudit\[robust\]'"):
        optional("no_such_package.part", "robust", "Attacking a model")
