"""A digest names data: equal data, equal name, whatever the order of keys or the division into chunks."""

from attnaudit.numerics.digest import content_digest, digest


def test_equal_data_has_one_name_on_every_machine():
    assert digest("a", [1, {"b": None}]) == "9278feff9bcf20faf217a269e78c8cb3"
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


def test_different_data_has_different_names():
    assert len({digest("a"), digest("a", "b"), digest(["a"]), digest("ab"), digest(1), digest("1")}) == 6


def test_size_is_in_bytes():
    assert len(digest("a", size=4)) == 8
    assert len(content_digest([b"a"])) == 32


def test_chunks_of_bytes_make_no_difference():
    assert content_digest([b"ab", b"", b"c"]) == content_digest([b"abc"]) != content_digest([b"acb"])
