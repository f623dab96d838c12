"""Training: it learns, resumes after a kill as if nothing had happened, and refuses what it cannot do."""

import json
import multiprocessing
import os
from functools import partial

import pytest
import torch
from safetensors.torch import load_file

from attnaudit.errors import (
    RunFolderError,
    UsageError,
)
from attnaudit.records.training import open_training
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.cards import read_card
from attnaudit.sources.labelled import training_and_test
from attnaudit.training.distributed import DeviceSettings, Ranks
from attnaudit.training.loop import train
from attnaudit.training.recipe_file import read_recipe
from tests.training.conftest import NO_AUGMENTATION, find_port
from tests.training.two_ranks import train_on_two_ranks


class Killed(BaseException):
    """Stands for a signal: nothing catches it on the way."""


def weights(folder, file="model.safetensors"):
    return load_file(folder / file)


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_warm_up_that_outlasts_the_training_is_said(tmp_path, recipe_file, halves):
    said = []
    changes = ["epochs=1", "optimiser.warmup_epochs=2", "monitor.images=0"]
    train(read_recipe(str(recipe_file), changes), halves, tmp_path / "run", tell=said.append)
    assert any(
        line.startswith("The rate does not reach 0.003: its warm-up takes 2 epochs, and the whole training 1")
        for line in said
    )


def test_training_learns_what_can_be_learned(recipe_file, halves, tmp_path):
    plain = ["augmentation.kind=none", "augmentation.mix_share=0", "augmentation.erase=0", "model.drop_path=0"]
    recipe = read_recipe(str(recipe_file), [*plain, "epochs=30", "optimiser.rate=1e-2", "monitor.images=0"])
    trained = train(recipe, halves, tmp_path / "run")
    assert trained.history[-1]["test_accuracy"] >= 0.8
    assert trained.history[-1]["train_loss"] < trained.history[0]["train_loss"]


@pytest.mark.parametrize(
    ("case", "changes", "stops"),
    [
        *(("images", [f"augmentation.kind={kind}"], (3, 5, 6, 12)) for kind in ("crop-flip", "timm")),
        ("segmentation", [], (3, 7)),
        ("text", [], (3, 7)),
    ],
    indirect=["case"],
)
def test_a_killed_training_is_resumed_to_the_same_weights(case, tmp_path, changes, stops):
    recipe, data, often = case.recipe(*changes), case.data, DeviceSettings(save_after=0)
    whole = train(recipe, data, tmp_path / "whole", device_settings=often)
    for stop in stops:
        killed = tmp_path / f"killed-{stop}"
        with pytest.raises(Killed):
            train(recipe, data, killed, device_settings=often, progress=partial(kill, stop))
        assert not (killed / "model.safetensors").exists()
        resumed = train(recipe, data, killed, device_settings=often)
        for file in ("model.safetensors", "average.safetensors"):
            assert same(weights(whole.path, file), weights(resumed.path, file))
        varying = ("train_loss", "images_per_second", "contexts_per_second")
        records = [[{k: v for k, v in r.items() if k not in varying} for r in run.history] for run in (whole, resumed)]
        assert records[0] == records[1]
        assert [r["train_loss"] for r in whole.history] == pytest.approx([r["train_loss"] for r in resumed.history])


def kill(stop, done, total, words):
    if done == stop:
        raise Killed


def _train_and_die(recipe_file, data, out):
    torch.set_num_threads(1)  # as in the process that resumes
    recipe = read_recipe(str(recipe_file))

    def kill(done, total, words):
        if done == 7:
            os.kill(os.getpid(), 9)

    train(recipe, training_and_test(data), out, device_settings=DeviceSettings(save_after=0), progress=kill)


def test_a_process_that_is_killed_leaves_a_checkpoint_to_resume_from(recipe_file, data_set, halves, tmp_path):
    process = multiprocessing.get_context("spawn").Process(
        target=_train_and_die, args=(recipe_file, data_set, tmp_path / "killed")
    )
    process.start()
    process.join()
    assert process.exitcode == -9
    recipe = read_recipe(str(recipe_file))
    resumed = train(recipe, halves, tmp_path / "killed")
    whole = train(recipe, halves, tmp_path / "whole")
    assert same(weights(whole.path), weights(resumed.path))


def test_the_seed_decides_everything(case, tmp_path):
    first, again, other = (
        weights(train(case.recipe(), case.data, tmp_path / name, seed=seed).path)
        for name, seed in (("first", 1), ("again", 1), ("other", 2))
    )
    assert same(first, again)
    assert not same(first, other)


def test_training_leaves_the_global_random_state_alone(recipe_file, halves, tmp_path):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    train(read_recipe(str(recipe_file), ["epochs=1"]), halves, tmp_path / "run")
    assert torch.equal(before, torch.get_rng_state())


def test_the_monitor_does_not_change_the_weights(case, tmp_path):
    with_monitor = train(case.recipe(), case.data, tmp_path / "with")
    without = train(case.recipe(case.unmonitored), case.data, tmp_path / "without")
    assert any((with_monitor.path / "evidence").iterdir())
    assert not any((without.path / "evidence").iterdir())
    assert same(weights(with_monitor.path), weights(without.path))


def test_a_finished_training_is_not_repeated(recipe_file, halves, tmp_path):
    recipe = read_recipe(str(recipe_file))
    train(recipe, halves, tmp_path / "run")
    steps = []
    train(recipe, halves, tmp_path / "run", progress=lambda done, total, words: steps.append(done))
    assert steps == []


def test_files_of_a_finished_training_are_restored(recipe_file, halves, tmp_path):
    recipe = read_recipe(str(recipe_file))
    folder = train(recipe, halves, tmp_path / "run").path
    files = [path for path in folder.iterdir() if path.suffix in (".json", ".safetensors") and path.name != "run.json"]
    before = {path: path.read_bytes() for path in files}
    assert {"history.json", "card.json"} <= {path.name for path in files}
    for path in files:
        path.write_bytes(before[path][:200])
    train(recipe, halves, folder)
    assert {path: path.read_bytes() for path in files} == before


def test_a_trained_folder_is_a_model_to_audit(recipe_file, halves, tmp_path):
    recipe = read_recipe(str(recipe_file), ["epochs=1", "model.attention=symmetric", "model.attention_layers=[1]"])
    trained = train(recipe, halves, tmp_path / "run")
    model = load_model(parse_model(str(trained.path)))
    assert same(model.module.state_dict(), weights(trained.path))
    assert model.untrained is not None
    assert "Symmetric" in type(model.module.blocks[1].attn).__name__
    assert "Symmetric" not in type(model.module.blocks[0].attn).__name__


def test_two_processes_train_the_model_that_one_trains(case, tmp_path, free_port):
    train_on_two_ranks(free_port, case.recipe_file, case.plain, case.folder, tmp_path / "two")
    one = train(case.recipe(*case.plain), case.data, tmp_path / "one")
    last = json.loads((tmp_path / "two" / "history.json").read_text())["epochs"][-1]
    for name, tolerance in case.scores.items():
        assert last[name] == pytest.approx(one.history[-1][name], rel=tolerance, abs=0)
    for name, tensor in weights(one.path).items():
        torch.testing.assert_close(weights(tmp_path / "two")[name], tensor, atol=1e-6, rtol=1e-5)


def test_two_processes_that_are_stopped_and_resumed_have_the_loss_of_an_epoch_of_both(recipe_file, data_set, tmp_path):
    """Each has other images, and one of them writes the checkpoint: after three of the five steps of an epoch."""
    changes = ("epochs=1", "monitor.images=0", "model.drop_path=0", *NO_AUGMENTATION)
    for out, stop in (("whole", None), ("stopped", 4), ("stopped", None)):
        train_on_two_ranks(find_port(), recipe_file, changes, data_set, tmp_path / out, stop=stop)
    whole, resumed = (
        json.loads((tmp_path / out / "history.json").read_text())["epochs"][0] for out in ("whole", "stopped")
    )
    assert resumed["train_loss"] == pytest.approx(whole["train_loss"], rel=1e-6)


def test_a_batch_that_does_not_split_among_processes_is_refused():
    with pytest.raises(UsageError, match=r"batch .* 3 processes, got 8"):
        Ranks(0, 3).share(8)


def test_other_settings_in_the_same_folder_are_refused_and_nothing_is_lost(recipe_file, halves, tmp_path):
    train(read_recipe(str(recipe_file)), halves, tmp_path / "run")
    before = weights(tmp_path / "run")
    with pytest.raises(RunFolderError, match="holds a run with other recipe"):
        train(read_recipe(str(recipe_file), ["batch=4"]), halves, tmp_path / "run")
    with pytest.raises(RunFolderError, match="holds a run with other seed"):
        train(read_recipe(str(recipe_file)), halves, tmp_path / "run", seed=3)
    assert same(before, weights(tmp_path / "run"))


def test_a_monitored_training_is_resumed_with_the_same_number_of_processes(recipe_file, halves, tmp_path):
    """Each monitors its share of the images: other shares would be other images under the same names."""

    def kill(done, total, words):
        raise Killed

    recipe = read_recipe(str(recipe_file))
    with pytest.raises(Killed):
        train(recipe, halves, tmp_path / "run", progress=kill)
    with pytest.raises(RunFolderError, match=r"holds a run with other ranks \(1 there, 2 here\)"):
        train(recipe, halves, tmp_path / "run", device_settings=DeviceSettings(ranks=Ranks(0, 2)))
    assert train(recipe, halves, tmp_path / "run").history


def test_without_a_monitor_the_number_of_processes_makes_no_other_run(recipe_file, halves, tmp_path):
    train(read_recipe(str(recipe_file), ["monitor.images=0", "epochs=1"]), halves, tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["identity"]["ranks"] is None


def test_the_folder_says_how_many_examples_an_accuracy_is_of(recipe_file, halves, tmp_path):
    train(read_recipe(str(recipe_file), ["monitor.images=0", "epochs=1"]), halves, tmp_path / "run")
    assert open_training(tmp_path / "run").settings.test_examples == len(halves[1])


PRIMAL = ["model.attention=primal", "model.attention_options={rank: 2}", "epochs=1", "monitor.images=0"]


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        (PRIMAL, ["ksvd_weight=0.5"]),
        (["epochs=1", "monitor.images=0"], ["optimiser.clip=0.001"]),
        (["epochs=1", "monitor.images=0"], ["model.standardise=true"]),
    ],
)
def test_regulariser_clipping_and_standardisation_reach_the_weights(recipe_file, halves, tmp_path, changes, more):
    sgd = ["optimiser.name=sgd", "optimiser.rate=0.1"]  # Adam would divide a clipped gradient by its own size
    plain = train(read_recipe(str(recipe_file), [*changes, *sgd]), halves, tmp_path / "plain")
    other = train(read_recipe(str(recipe_file), [*changes, *sgd, *more]), halves, tmp_path / "other")
    assert not same(weights(plain.path), weights(other.path))


def test_the_training_loss_is_a_mean_over_steps(recipe_file, halves, tmp_path):
    slow = [f"optimiser.{name}" for name in ("rate=1e-9", "smallest_rate=0", "warmup_rate=0")]
    recipe = read_recipe(str(recipe_file), [*slow, "monitor.images=0"])
    for record in train(recipe, halves, tmp_path / "run").history:
        assert record["train_loss"] == pytest.approx(0.693, abs=0.15)  # two classes, nothing learned


def test_a_card_says_what_was_trained_alike_and_what_layers_attend_with(recipe_file, halves, tmp_path):
    def facts(name, *changes, seed=0):
        recipe = read_recipe(str(recipe_file), ["epochs=1", *changes])
        return read_card(train(recipe, halves, tmp_path / name, seed=seed).path).facts

    softmax = facts("softmax")
    rpc = facts("rpc", "model.attention=rpc", "model.attention_layers=[0]", "name=other", "monitor.images=0", seed=1)
    assert "attention" not in softmax
    assert rpc["attention"].keys() == {"blocks.0.attn"}
    assert 0 <= rpc["attention"]["blocks.0.attn"]["nonzero"] <= 1
    assert rpc["setting"] == softmax["setting"]
    assert facts("slower", "optimiser.rate=1e-4")["setting"] != softmax["setting"]
    fewer = halves[0].first(16), halves[1]
    less = train(read_recipe(str(recipe_file), ["epochs=1"]), fewer, tmp_path / "less")
    assert read_card(less.path).facts["setting"] != softmax["setting"]


def test_a_monitor_with_fewer_images_than_asked_for_says_so(recipe_file, halves, tmp_path):
    lines = {}
    for wanted in (8, 24):
        told = lines[wanted] = []
        recipe = read_recipe(str(recipe_file), ["epochs=1", f"monitor.images={wanted}"])
        train(recipe, halves, tmp_path / str(wanted), tell=told.append)
    assert not [line for line in lines[8] if "instead of" in line]
    assert [line.partition(":")[0] for line in lines[24] if "instead of" in line] == [
        f"The monitor uses {found} images instead of 24" for found in ("8 train", "20 test")
    ]
