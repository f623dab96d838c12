"""The segmentation experiment: its recipes, its commands, and the table that it writes."""

import pytest
from benchmarks import segmentation_experiment as experiment
from benchmarks.segmentation_pictures import draw_masks
from benchmarks.segmentation_tables import write_corruptions, write_table
from PIL import Image

from attnaudit.records.json_file import plain
from attnaudit.training.recipe_file import read_recipe
from tests.claims.evaluations import RPC, SYMMETRIC, network
from tests.claims.test_rpc_segments_better import write_evaluation
from tests.robustness.test_segmentation import write_segmenter
from tests.sources.masks import SHAPE, write_masks

pytest.importorskip("timm")


def recipe(name):
    return read_recipe(str(experiment.FOLDER / f"segment-{name}.yaml"))


def test_every_recipe_is_in_the_experiment():
    assert sorted(path.stem for path in experiment.FOLDER.glob("*.yaml")) == sorted(
        f"segment-{name}" for name in experiment.RECIPES
    )


@pytest.mark.parametrize("name", experiment.RECIPES)
def test_recipes_differ_in_their_model_alone(name):
    own, reference = (plain(recipe(own)) for own in (name, "softmax"))
    assert {setting for setting in own if own[setting] != reference[setting]} <= {"name", "about", "model"}


def test_iterations_and_layers_are_those_of_the_paper():
    """Table 6 puts the networks of Table 1 into a backbone: 4, 5 or 6 iterations in the first layer, or 2 in all."""
    for iterations in (4, 5, 6):
        model = recipe(f"rpc{iterations}").model
        assert (model.attention_options["iterations"], model.attention_layers) == (iterations, (0,))
        assert model.other_attention == "symmetric"
    assert recipe("rpc-all2").model.attention_layers is None


def test_networks_of_a_recipe_are_evaluated_together_when_they_are_there(tmp_path):
    (tmp_path / "test.parquet").touch()
    words = ["--data", str(tmp_path), "--corrupted", "c", "--runs", str(tmp_path), "--train=--graph", "--seeds", "0,1"]
    arguments = experiment.parser().parse_args([*words, "--device", "cpu"])
    block = experiment.blocks_of(arguments)[0]
    assert block[1].words()[-1] == "--graph"
    clean, corrupted = experiment.shares_of(block, arguments).values()
    assert clean.needs == corrupted.needs == tuple(block)
    assert clean.words()[1:3] == [str(training.folder) for training in block]
    assert corrupted.words()[corrupted.words().index("--corrupted") + 1] == "c"


def test_the_table_has_means_over_seeds_and_gains_by_seed(tmp_path):
    decoder = {"decoder": "linear"}
    networks = [network("segment-symmetric", SYMMETRIC | decoder, seed) for seed in range(2)]
    networks += [network("segment-rpc4", RPC | decoder, seed, corrupted=0.02 + 0.01 * seed) for seed in range(2)]
    folder = write_evaluation(tmp_path / "run", networks)
    write_table([folder], tmp_path / "table.md")
    (row,) = [line for line in (tmp_path / "table.md").read_text().splitlines() if line.startswith("| segment-rpc4")]
    # 60 % and a point more per seed, and 2 or 3 of gain; t of one degree of freedom is 12.71, so a gain is ± 6.35
    assert row.startswith("| segment-rpc4 | 2 | 63.00 [50.29, 75.71]")
    assert row.endswith("| +2.50 [-3.85, +8.85] |")
    write_corruptions([folder], tmp_path)
    lines = (tmp_path / "corruptions.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 2
    assert any(line.startswith("segment-rpc4,fog,2,0.63") for line in lines)


def test_masks_are_drawn_beside_inputs_and_truth(tmp_path):
    write_masks(tmp_path / "test.parquet", 4)
    networks = {name: write_segmenter(tmp_path / name) for name in ("one", "two")}
    draw_masks(networks, tmp_path, tmp_path / "nowhere", tmp_path / "masks.png")
    sheet = Image.open(tmp_path / "masks.png")
    assert sheet.size == (4 * SHAPE[1], 12 + 3 * SHAPE[0])
