"""Recipes: read, based on one another, changed, and refused with a sentence."""

import pytest

from attnaudit.errors import UsageError
from attnaudit.training.recipe import read_recipe
from attnaudit.training.recipe_file import recipe_names


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


def test_a_recipe_is_laid_over_its_base(tmp_path, recipe_file):
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
    ("change", "sentence"),
    [
        ("model.dept=3", "recipe tiny: model has no setting 'dept': did you mean depth?"),
        ("epochs=many", "recipe tiny: epochs is 'many': it is a whole number."),
        ("epochs=true", "recipe tiny: epochs is True: it is a whole number."),
        ("precision=fp8", "recipe tiny: precision is 'fp8'; there is bf16, fp32."),
        ("model.heads=5", "A width of 24 does not split into 5 heads."),
        ("model.patch_size=3", "Pictures of 8 pixels do not split into patches of 3."),
        ("batch=7", "Mixup pairs pictures, so recipe tiny needs an even batch, not 7."),
        ("ksvd_weight=0.1", "Recipe tiny has a ksvd_weight, but its attention is softmax."),
        ("model", "--set model: say which setting gets which value, e.g. --set model.depth=6."),
        ("epochs.more=1", "--set epochs.more=1: epochs has no settings under it."),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(recipe_file, change, sentence):
    with pytest.raises(UsageError) as error:
        read_recipe(str(recipe_file), [change])
    assert str(error.value) == sentence


def test_an_unknown_recipe_is_answered_with_the_known_ones():
    with pytest.raises(UsageError, match=r"There is no recipe 'vit'; there are .*vit-small-cifar"):
        read_recipe("vit")


def test_a_recipe_that_is_no_yaml_is_refused(tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text("model: {width: 3")
    with pytest.raises(UsageError, match="cannot be read as YAML"):
        read_recipe(str(path))
