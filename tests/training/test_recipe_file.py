"""Recipe files: read, merged with their base, changed, and refused with the setting that is wrong."""

from dataclasses import replace
from pathlib import Path

import pytest

from attnaudit.errors import UsageError
from attnaudit.records import json_file
from attnaudit.records.recipe import AnyRecipe, ImageRecipe, TextRecipe
from attnaudit.training.recipe_file import read_recipe, recipe_names


@pytest.mark.parametrize("name", recipe_names())
def test_recipes_of_the_package_are_complete_and_say_what_they_are(name):
    recipe = read_recipe(name)
    assert recipe.name == name
    assert recipe.about


def test_the_study_trains_what_its_specification_says():
    vit, deit = read_recipe("study-vit-tiny"), read_recipe("study-deit-tiny")
    assert (vit.model.width, vit.model.depth, vit.model.heads, vit.model.tokens) == (192, 12, 3, 197)
    assert deit.model.heads == 6
    assert (vit.batch, vit.epochs, vit.optimiser.rate, vit.optimiser.smallest_rate) == (256, 300, 5e-5, 1e-5)
    assert (vit.optimiser.weight_decay, vit.optimiser.warmup_epochs, vit.model.drop_path) == (0.05, 0, 0.1)
    assert (vit.augmentation.mixup, vit.augmentation.cutmix, vit.augmentation.erase) == (0.8, 1.0, 0.25)
    assert (vit.model.standardise, vit.model.initialisation, vit.monitor.train_mode) == (True, "torch", True)


def test_a_recipe_is_merged_with_its_base(tmp_path, recipe_file):
    path = tmp_path / "wider.yaml"
    path.write_text("base: tiny\nmodel: {width: 48}\n")
    recipe = read_recipe(str(path))
    assert (recipe.name, recipe.model.width, recipe.model.depth) == ("wider", 48, 2)


def test_changes_reach_nested_settings_and_read_numbers_as_numbers(recipe_file):
    recipe = read_recipe(
        str(recipe_file),
        ["model.attention=scaled", "model.attention_options={form: exact}", "optimiser.rate=1e-2", "average=null"],
    )
    assert recipe.model.attention_options == {"form": "exact"}
    assert recipe.optimiser.rate == 0.01
    assert recipe.average is None


@pytest.mark.parametrize(
    ("recipe", "change", "named"),
    [
        ("tiny", "model.dept=3", "recipe tiny: model: unknown setting 'dept': did you mean depth?"),
        ("tiny", "epochs=many", 'recipe tiny: epochs must be a whole number, got "many".'),
        ("tiny", "epochs=true", "recipe tiny: epochs must be a whole number, got true."),
        ("tiny", "precision=fp8", "recipe tiny: precision must be one of 'bf16' or 'fp32', got \"fp8\"."),
        (
            "tiny",
            "model.image_width=12",
            "model.image_width is for task segmentation, since images with labels are cropped to squares, got 12",
        ),
        (
            "tiny",
            "optimiser.rate=1e-6",
            "recipe tiny: optimiser: smallest_rate must be ≤ rate, which the cosine falls from, got 1e-05 > 1e-06:",
        ),
        ("tiny", "model.heads=5", "recipe tiny: model: a width of 24 does not split into 5 heads."),
        ("tiny", "model.patch_size=3", "images of 8 pixels do not split into patches of 3."),
        ("tiny", "batch=7", "recipe tiny: batch must be even, because mixup pairs images, got 7."),
        ("tiny", "ksvd_weight=0.1", "ksvd_weight is for primal attention, but the model has softmax."),
        ("tiny", "model", "--set model: "),
        ("tiny", "epochs.more=1", "--set epochs.more=1: "),
        ("tiny", "model.depth=[", "--set model.depth=[: "),
        ("tiny", "optimiser.clip=-1", "recipe tiny: optimiser: clip must be > 0, got -1."),
        ("tiny", "optimiser.rate=-1", "optimiser: rate must be > 0, got -1."),
        ("tiny", "augmentation.smoothing=7", "augmentation: smoothing must be ≥ 0 and ≤ 1, got 7."),
        ("tiny", "augmentation.padding=-9", "augmentation: padding must be ≥ 0, got -9."),
        ("tiny", "augmentation.distort=2", "augmentation: distort must be ≥ 0 and ≤ 1, got 2."),
        (
            "tiny",
            "augmentation.auto_augment=rand-m9",
            "augmentation: auto_augment is for kind timm; crop-flip has distort.",
        ),
        ("tiny", "average=1.5", "recipe tiny: average must be ≥ 0 and ≤ 1, got 1.5."),
        ("tiny", "optimiser.rate=.inf", "recipe tiny: optimiser.rate must be a finite number, got Infinity."),
        ("tiny", f"optimiser.rate=1{'0' * 400}", f"optimiser.rate must be a finite number, got 1{'0' * 39}…."),
        ("tiny", "model.width=-24", "model: a width of -24 does not split into 2 heads."),
        ("tiny", "monitor.every=0", "monitor: every must be ≥ 1, got 0."),
        ("tiny", "monitor.images=-1", "monitor: images must be ≥ 0, got -1."),
        ("tiny", "model.drop_path=3", "model: drop_path must be ≥ 0 and < 1, got 3."),
        ("tiny", "name=../escape", "name must be usable as a folder's (letters, digits, - and _), got '../escape'."),
        ("tiny", "about=2024-01-01x: [", "--set about"),
        ("tiny", "model=3", "recipe tiny: model must be names with values, got 3."),
        ("lm", "task=sound", "recipe lm: task must be one of images, segmentation, text, sentences, got 'sound'."),
        ("lm", "task=[]", "recipe lm: task must be one of images, segmentation, text, sentences, got []."),
        ("lm", "min_count=0", "recipe lm: min_count must be ≥ 1, got 0."),
        ("lm", "swap_rate=2", "recipe lm: swap_rate must be ≥ 0 and ≤ 1, got 2."),
        ("lm", "epochs=0", "recipe lm: epochs must be ≥ 1, got 0."),
        ("lm", "model.image_size=32", "recipe lm: model: unknown setting 'image_size'"),
        ("lm", "monitor.contexts=-1", "recipe lm: monitor: contexts must be ≥ 0, got -1."),
        ("lm", "model.width=0", "recipe lm: model: a width of 0 does not split into 6 heads."),
        ("lm", "monitor.images=3", "recipe lm: monitor: unknown setting 'images'"),
        ("lm", "augmentation.mixup=1", "recipe lm: unknown setting 'augmentation'"),
    ],
)
def test_invalid_settings_are_named(recipe_file, recipe, change, named):
    with pytest.raises(UsageError) as error:
        read_recipe(str(recipe_file) if recipe == "tiny" else recipe, [change])
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def test_a_width_that_is_the_height_and_a_rate_that_stays_are_taken(recipe_file):
    recipe = read_recipe(str(recipe_file), ["model.image_width=8", "optimiser.rate=1e-5"])
    assert recipe.model.image_shape == (8, 8)
    assert recipe.optimiser.rate == recipe.optimiser.smallest_rate


def test_an_unknown_recipe_is_answered_with_the_known_ones():
    with pytest.raises(UsageError, match=r"'vit'.*vit-small-cifar"):
        read_recipe("vit")


def test_a_setting_may_repeat_what_it_is_merged_with(tmp_path):
    path = tmp_path / "merged.yaml"
    path.write_text("base: vit-small-cifar\nmodel: {<<: &size {width: 96, depth: 2}, width: 192}\n")
    assert (read_recipe(str(path)).model.width, read_recipe(str(path)).model.depth) == (192, 2)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (
            b"epochs: 3\nmodel:\n\tdepth: 2\n",
            r"cannot be read as YAML \(line 3: found character '\\t'",
        ),
        (b"model: {width: 3", "cannot be read as YAML"),
        (b"model:\n  depth: 2\nbatch: 8\nmodel:\n  width: 3\n", r"\(line 4: model is set twice\)"),
        (b"model: {width: 3, width: 4}", r"\(line 1: width is set twice\)"),
        (b"\xff\xfe\x00", "cannot be read as YAML"),
        (b"- epochs\n", "broken.yaml must hold settings"),
        (b"", "broken.yaml must hold settings"),
    ],
)
def test_a_file_that_does_not_hold_settings_is_refused(tmp_path, content, fault):
    path = tmp_path / "broken.yaml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=fault):
        read_recipe(str(path))


def test_a_recipe_is_about_images_unless_it_says_text(tmp_path, recipe_file):
    assert isinstance(read_recipe(str(recipe_file)), ImageRecipe)
    assert isinstance(read_recipe(str(recipe_file), ["task=images"]), ImageRecipe)
    assert isinstance(read_recipe("lm"), TextRecipe)
    path = tmp_path / "longer.yaml"
    path.write_text("base: lm\nmodel: {context: 256}\n")
    assert read_recipe(str(path)).model.context == 256


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_comes_back_from_plain_data(name):
    recipe = read_recipe(name, ["model.attention=rpc", "model.attention_layers=[0]", "model.other_attention=symmetric"])
    content = json_file.plain(recipe)
    assert content["model"]["attention_layers"] == [0]
    assert content["model"]["other_attention"] == "symmetric"
    assert json_file.parse(AnyRecipe, content, "test") == recipe


def test_the_language_models_that_are_compared_differ_in_their_attention_alone():
    folder = Path(__file__).parents[2] / "docs" / "results" / "robustness" / "recipes"
    recipes = {path.stem: read_recipe(str(path)) for path in folder.glob("lm-*.yaml")}
    assert set(recipes) == {"lm-softmax", "lm-symmetric", "lm-rpc"}
    plain = {"attention": "softmax", "attention_layers": None, "attention_options": {}, "other_attention": "softmax"}
    reference = replace(read_recipe("lm"), name="same", about="")
    for recipe in recipes.values():
        assert replace(recipe, name="same", about="", model=replace(recipe.model, **plain)) == reference
    rpc = recipes["lm-rpc"].model
    assert (rpc.attention, rpc.attention_layers, rpc.other_attention) == ("rpc", (0, 1), "symmetric")


def test_a_recipe_may_have_the_name_of_its_base_but_not_be_its_own(tmp_path):
    (tmp_path / "vit-small-cifar.yaml").write_text("base: vit-small-cifar\nepochs: 3\n")
    assert read_recipe(str(tmp_path / "vit-small-cifar.yaml")).epochs == 3
    for name, base in (("one", "two"), ("two", "one")):
        (tmp_path / f"{name}.yaml").write_text(f"base: {base}\n")
    with pytest.raises(UsageError, match=r"two\.yaml and one are based on each other"):
        read_recipe(str(tmp_path / "one.yaml"))


LAUGHS = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{below}'] * 10)}]\n" for below, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("{a: " * 100_000, "nested too deeply"),
        (LAUGHS, "10,000 values"),
        ("model: &m {depth: *m}", "10,000 values|recursive"),
        ("epochs: 2024-99-99", "month"),
        ("epochs: !!int twelve", "twelve"),
        ("epochs: !!python/object/apply:os.getcwd []", "line 1"),
        ("epochs: " + "9" * 5000, "5000|digits|integer"),
        ("base: [1, 2]", r"base .* \[1, 2\]"),
        ("base: " + "a" * 5000, "base .*aaa"),
        ("? [a]\n: 1", "line 1"),
        ("a: b: c", "line 1"),
        ("\t- x", "line 1"),
        ("- 1", "settings by name"),
        ("#" * (1 << 21), "too large"),
    ],
)
def test_damaged_and_hostile_yaml_is_refused_in_one_sentence(tmp_path, content, named):
    path = tmp_path / "own.yaml"
    path.write_text(content)
    with pytest.raises(UsageError, match=named) as caught:
        read_recipe(str(path))
    assert "\n" not in str(caught.value)


def test_a_change_with_hostile_yaml_is_refused(recipe_file):
    with pytest.raises(UsageError, match="--set epochs="):
        read_recipe(str(recipe_file), ["epochs=" + "[" * 100_000])
