"""Networks of our own in the atlas: what they read, and what they are known by."""

from dataclasses import replace

import pytest
import torch
from PIL import Image

import attnaudit
from attnaudit.errors import InputError, UsageError
from attnaudit.protocol import Protocol
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.atlas import entry as entries
from attnaudit.sources.atlas import registry
from attnaudit.sources.atlas.entry import resource_texts
from attnaudit.sources.model import Sample
from attnaudit.sources.selection import InputSelection, select_inputs
from tests.sources.atlas.built import IMAGE, LENGTHS, WIDTH, Patches, built_entry, samples

OPTIONS = {"references": (), "claims": (), "measures": ("linear_cka",), "progress": False}


@pytest.fixture
def atlas(tmp_path, monkeypatch):
    """A model that reads series, and one that reads images; their folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ATTNAUDIT_DATA", raising=False)
    folder = tmp_path / "files"
    for own in (
        built_entry(folder, samples=samples, reads="series"),
        built_entry(folder, "pictures", Patches, image=IMAGE, reads="images"),
    ):
        monkeypatch.setitem(registry.ATLAS, own.name, own)
    return folder


def loaded(name, folder):
    return load_model(parse_model(name, weights=folder))


def test_samples_of_any_length_are_audited_one_by_one(atlas, tmp_path):
    run = attnaudit.audit("series", weights=atlas, out=tmp_path / "run", **OPTIONS)
    assert {row["input"]: row["tokens"] for row in run.evidence.to_pylist()} == {
        f"series-{place}": length for place, length in enumerate(LENGTHS)
    }
    assert run.groups == {"series-0": "pair", "series-1": "pair"}


def test_a_limit_draws_samples_by_the_seed_or_takes_the_first(atlas):
    spec = parse_model("series", weights=atlas)

    def names(**options):
        shards = select_inputs([spec], InputSelection(limit=2, **options), Protocol.EXACT).shards
        return [name for shard in shards for name in shard.names]

    assert names(first=True) == ["series-0", "series-1"]
    assert {tuple(names(seed=seed)) for seed in range(20)} > {tuple(names(seed=0))}


@pytest.mark.parametrize("options", [{"kind": "text"}, {"lines": True}, {"by_folder": True}])
def test_options_of_other_inputs_are_refused_beside_samples(atlas, options):
    spec = parse_model("series", weights=atlas)
    with pytest.raises(UsageError, match="series reads series, which come with it"):
        select_inputs([spec], InputSelection(**options), Protocol.EXACT)


def test_models_with_different_inputs_are_audited_separately(atlas):
    specs = [parse_model(name, weights=atlas) for name in ("series", "pictures")]
    with pytest.raises(UsageError, match="different kinds of inputs"):
        select_inputs(specs, InputSelection(), Protocol.EXACT)


def test_a_sample_that_is_not_finite_is_named(atlas, monkeypatch):
    bad = [Sample("broken", {"rows": torch.full((1, 9, WIDTH), torch.nan)})]
    monkeypatch.setitem(registry.ATLAS, "series", replace(registry.ATLAS["series"], samples=lambda folder: bad))
    with pytest.raises(InputError, match=r"broken \(rows\) holds NaN"):
        select_inputs([parse_model("series", weights=atlas)], InputSelection(), Protocol.EXACT)


def test_images_are_prepared_as_the_entry_says(atlas, image_folder, tmp_path):
    model = loaded("pictures", atlas)
    pixels = model.preprocess(Protocol.EXACT)(Image.new("RGB", (50, 40), "white"))
    assert pixels.shape == (3, 32, 32)
    assert pixels.unique().tolist() == [1.0]
    run = attnaudit.audit("pictures", image_folder, weights=atlas, out=tmp_path / "run", **OPTIONS)
    assert run.rows.combinations("input")


def test_preparation_is_that_of_timm_where_margins_are_even():
    data = pytest.importorskip("timm.data")
    image = Image.effect_mandelbrot((300, 260), (-2, -1, 1, 1), 40).convert("RGB")
    size = {"input_size": (3, IMAGE.size, IMAGE.size), "crop_pct": IMAGE.crop, "interpolation": "bicubic"}
    theirs = data.create_transform(**size, mean=IMAGE.mean, std=IMAGE.std, is_training=False)(image)
    torch.testing.assert_close(IMAGE.preprocess(Protocol.EXACT)(image), theirs, atol=1e-6, rtol=0)


def test_a_model_is_known_by_weights_network_and_preparation(atlas, monkeypatch):
    before = loaded("pictures", atlas)
    assert loaded("pictures", atlas).fingerprint == before.fingerprint
    assert before.notes[-1] == "made for a test"
    other = replace(IMAGE, crop=1.0)
    monkeypatch.setitem(registry.ATLAS, "pictures", replace(registry.ATLAS["pictures"], image=other))
    assert loaded("pictures", atlas).fingerprint != before.fingerprint


def test_the_untrained_twin_follows_from_the_seed(atlas):
    model = loaded("series", atlas)
    first, again, other = (model.untrained(seed).qkv.weight.clone() for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first, model.module.qkv.weight)
    assert load_model(parse_model("series", random_weights=True, seed=3)).weights_origin == "random"


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"samples": samples, "image": IMAGE, "reads": "images"}, "one kind of inputs"),
        ({}, "both or neither of build"),
        ({"image": IMAGE}, "reads text"),
    ],
)
def test_an_entry_that_contradicts_itself_is_refused(tmp_path, options, fault):
    with pytest.raises(ValueError, match=fault):
        built_entry(tmp_path / "files", **options)


def test_resources_are_lines_with_comments(tmp_path, monkeypatch):
    (tmp_path / "proteins.txt").write_text("# from a public database\nEVQL\n\nQVQL\n")
    monkeypatch.setattr(entries, "RESOURCES", tmp_path)
    assert resource_texts("proteins.txt")(tmp_path) == ["EVQL", "QVQL"]
