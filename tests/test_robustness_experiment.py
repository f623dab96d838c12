"""The robustness experiment: its recipes, and trainings that wait for each other, fail, and go on."""

import pytest
import torch
from benchmarks import robustness_experiment as experiment
from benchmarks import robustness_jobs as jobs
from benchmarks.robustness_temperature import training_images
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from attnaudit.errors import RunFolderError, UsageError
from attnaudit.records.json_file import plain
from attnaudit.sources.labelled import read_labelled
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.training.recipe_file import read_recipe
from tests.robustness.subjects import write_parquet

pytest.importorskip("timm")


def recipe(name):
    return read_recipe(str(experiment.FOLDER / f"robust-{name}.yaml"))


def test_every_recipe_is_in_the_experiment():
    assert sorted(path.stem for path in experiment.FOLDER.glob("robust-*.yaml")) == sorted(
        f"robust-{name}" for name in (*experiment.RECIPES, *experiment.FAN)
    )


@pytest.mark.parametrize("name", [*experiment.RECIPES, *experiment.FAN])
def test_recipes_differ_in_their_model_alone_and_can_be_built(name):
    own, reference = (plain(recipe(own)) for own in (name, "softmax"))
    changed = {setting for setting in own if own[setting] != reference[setting]}
    assert changed <= {"name", "about", "model"}
    assert build_vision_transformer(recipe(name).model, 0)(torch.zeros(1, 3, 32, 32)).shape == (1, 10)


def operations(name):
    """Multiplications of an image, in attention too, which only torch's plain implementation counts on a CPU."""
    model = build_vision_transformer(recipe(name).model, 0)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        model(torch.zeros(1, 3, 32, 32))
    return counter.get_total_flops() / 2


def test_networks_of_the_same_compute_have_as_many_operations():
    """A layer of width C on N = 65 tokens: N·12C² + 2N²C with queries, N·11C² + 2N²C without; an iteration 2N²C."""
    pursuing = operations("rpc4")
    layers = 65 * 11 * 192**2 + 2 * 65**2 * 192
    assert pursuing - operations("symmetric") == 3 * 2 * 65**2 * 192
    assert pursuing == pytest.approx(6 * layers + 3 * 2 * 65**2 * 192, rel=0.005)  # beside patches and classes
    for name in ("softmax-compute", "symmetric-compute"):
        assert operations(name) == pytest.approx(pursuing, rel=0.01)
    assert operations("softmax") > 1.05 * pursuing


class Process:
    """A training that is over at the second look, and leaves a summary unless it is to fail."""

    def __init__(self, folder, fails):
        self.folder, self.fails, self.looks, self.stopped = folder, fails, 0, False

    def poll(self):
        self.looks += 1
        if self.looks < 2:
            return None
        if not self.fails:
            self.folder.mkdir(exist_ok=True)
            (self.folder / jobs.SUMMARY).touch()
        return int(self.fails)

    def terminate(self):
        self.stopped = True

    def wait(self):
        return 0


@pytest.fixture
def started(monkeypatch):
    """The commands that were started, by folder."""
    found = {}

    def start(words, log):
        folder = log.with_suffix("")
        found[folder.name] = words, Process(folder, fails=folder.name in found.get("failing", ()))
        return found[folder.name][1]

    monkeypatch.setattr(jobs, "start", start)
    monkeypatch.setattr(jobs.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(experiment, "temperature", lambda folder, data, device: 0.25)
    return found


@pytest.fixture
def arguments(tmp_path):
    (tmp_path / "shares").mkdir()
    (tmp_path / "test.parquet").touch()
    words = ["--data", str(tmp_path), "--corrupted", "corrupted", "--runs", str(tmp_path), "--train", "--epochs 1"]
    return experiment.parser().parse_args([*words, "--device", "cpu"])


def trainings(arguments, *recipes, seeds=(0,)):
    return [experiment.RobustnessTraining(name, seed, arguments) for name in recipes for seed in seeds]


def test_a_temperature_is_that_of_the_finished_network_of_its_seed(arguments, started):
    wanted = trainings(arguments, "symmetric-temperature", "rpc4", seeds=(0, 1))
    assert jobs.run_jobs(wanted, 2, float("inf"))
    names = list(started)
    assert names.index("robust-rpc4-1") < names.index("robust-symmetric-temperature-1")
    words, _ = started["robust-symmetric-temperature-1"]
    assert words[words.index("--set") + 1] == "model.attention_options.temperature=0.25"
    assert words[-2:] == ["--epochs", "1"]


def test_a_temperature_follows_from_training_images_and_from_no_test_image(tmp_path):
    for seed, half in enumerate(("train", "test")):
        write_parquet(tmp_path / f"{half}.parquet", seed=seed)
    train, test = (read_labelled(tmp_path / f"{half}.parquet") for half in ("train", "test"))
    looked_at = [image.tobytes() for image in training_images(tmp_path)]
    assert looked_at == [train.image(place).tobytes() for place in range(len(train))]
    assert not {test.image(place).tobytes() for place in range(len(test))} & {*looked_at}


def test_a_temperature_that_is_given_needs_no_other_network(arguments, started):
    arguments.temperatures = "0:0.241,2:0.26"
    given, computed = trainings(arguments, "symmetric-temperature", seeds=(2, 1))
    assert given.needs == ()
    assert computed.needs == tuple(trainings(arguments, "rpc4", seeds=(1,)))
    assert given.changes() == {"model.attention_options.temperature": 0.26}
    assert not trainings(arguments, "rpc4", seeds=(2,))[0].changes()


def test_options_of_the_attacks_leave_corruptions_alone(arguments):
    arguments.evaluate = "--compile --seed 3"
    found = experiment.conditions(arguments)
    attacked = {name for name, options in found.items() if "--compile" in options}
    assert attacked == {experiment.ATTACKED, experiment.STRONGEST}
    options = found[experiment.STRONGEST]
    assert options[options.index("--seed") + 1] == "3"


def test_what_is_finished_is_not_started_again(arguments, started):
    wanted = trainings(arguments, "rpc4", "symmetric")
    jobs.run_jobs(wanted[:1], 2, float("inf"))
    started.clear()
    assert jobs.run_jobs(wanted, 2, float("inf"))
    assert list(started) == ["robust-symmetric-0"]


def test_results_of_other_options_are_refused_and_not_shown_as_these(arguments, started):
    (first,) = trainings(arguments, "rpc4")
    jobs.run_jobs([first], 2, float("inf"))
    arguments.train = "--epochs 2"
    with pytest.raises(
        UsageError, match=r"robust-rpc4-0 was made with other options \(new: 2\): give --runs another folder"
    ):
        jobs.run_jobs([first], 2, float("inf"))


def test_a_control_that_was_made_with_other_options_is_refused_whatever_its_temperature(
    arguments, started, monkeypatch
):
    wanted = trainings(arguments, "rpc4", "symmetric-temperature")
    assert jobs.run_jobs(wanted, 2, float("inf"))
    monkeypatch.setattr(experiment, "temperature", lambda folder, data, device: 0.5)
    assert jobs.run_jobs(wanted, 2, float("inf"))  # finished, with the temperature of then
    arguments.train = "--epochs 2"
    with pytest.raises(UsageError, match=r"robust-symmetric-temperature-0 was made with other options \(new: 2\)"):
        jobs.run_jobs(wanted[1:], 2, float("inf"))


def test_a_failure_is_said_and_what_needs_it_is_left(arguments, started, capsys):
    started["failing"] = ("robust-rpc4-0",)
    wanted = trainings(arguments, "rpc4", "symmetric-temperature", "softmax")
    assert not jobs.run_jobs(wanted, 2, float("inf"))
    said = capsys.readouterr().out
    assert "robust-rpc4-0: FAILED" in said
    assert "2 of 3 are left: robust-rpc4-0, robust-symmetric-temperature-0" in said


@pytest.mark.parametrize("error", [UsageError, RunFolderError])
def test_a_network_without_a_temperature_is_said(arguments, started, monkeypatch, capsys, error):
    def none(folder, data, device):
        raise error("at no temperature.")

    monkeypatch.setattr(experiment, "temperature", none)
    assert not jobs.run_jobs(trainings(arguments, "rpc4", "symmetric-temperature"), 2, float("inf"))
    assert "robust-symmetric-temperature-0: not started: at no temperature." in capsys.readouterr().out


def test_when_the_time_is_over_everything_is_stopped(arguments, started, monkeypatch, capsys):
    clock = iter(range(100))
    monkeypatch.setattr(jobs.time, "monotonic", lambda: next(clock))
    assert not jobs.run_jobs(trainings(arguments, "rpc4"), 2, deadline=1)
    _, process = started["robust-rpc4-0"]
    assert process.stopped
    assert "1 of 1 are left" in capsys.readouterr().out


def test_what_was_started_is_stopped_however_the_program_ends(arguments, started, monkeypatch):
    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        jobs.run_jobs(trainings(arguments, "rpc4", "softmax"), 2, float("inf"))
    assert all(process.stopped for _, process in started.values())
    assert len(started) == 2


def shares(arguments, wanted):
    return [share for network in wanted for share in experiment.shares_of(network, arguments).values()]


def test_a_network_is_evaluated_by_itself_once_it_and_the_twin_are_there(arguments, started):
    wanted, twin = trainings(arguments, "rpc4", seeds=(0, 1)), trainings(arguments, "softmax")
    assert jobs.run_jobs([*shares(arguments, wanted), *wanted, *twin], 9, float("inf"))
    names = list(started)
    assert names.index("robust-strongest-rpc4-0") > names.index("robust-softmax-0")
    assert {name for name in names if "rpc4-0" in name} == {
        "robust-rpc4-0", "robust-corrupted-rpc4-0", "robust-strongest-rpc4-0"
    }  # fmt: skip
    words, _ = started["robust-attacked-rpc4-1"]
    assert words[1:3] == [str(wanted[1].folder), "--attacks"]
    assert words[words.index("--twin") + 1] == str(twin[0].folder)


def test_autoattack_is_run_beside_the_other_attacks_on_the_same_images(arguments):
    arguments.strongest_seeds, arguments.images = "0,1", 500
    (_, with_it), (_, without) = (
        shares(arguments, trainings(arguments, "rpc4", seeds=(seed,))) for seed in (1, 2)
    )  # fmt: skip
    assert with_it.folder.name == "robust-strongest-rpc4-1"
    assert without.folder.name == "robust-attacked-rpc4-2"
    assert "noise,fgsm,pgd,apgd,autoattack@1/255" in with_it.options
    assert set(with_it.options) ^ set(without.options) == {
        "noise,fgsm,pgd,apgd,autoattack@1/255", "noise,fgsm,pgd,apgd"
    }  # fmt: skip


def test_autoattack_is_run_on_the_recipes_that_are_named(arguments):
    arguments.strongest_recipes = "rpc4,rpc6"
    names = [share.folder.name for share in shares(arguments, trainings(arguments, "rpc1", "rpc6"))]
    assert names == [
        "robust-corrupted-rpc1-0", "robust-attacked-rpc1-0", "robust-corrupted-rpc6-0", "robust-strongest-rpc6-0"
    ]  # fmt: skip


def test_the_twin_is_trained_once_and_first_even_where_it_is_not_evaluated(arguments):
    for recipes, seed in (("rpc4", 3), ("symmetric,softmax", 0)):
        arguments.recipes, arguments.twin_seed = recipes, seed
        wanted = experiment.trainings_of(arguments)
        found = experiment.jobs_of(wanted, [experiment.shares_of(one, arguments) for one in wanted], arguments)
        assert found[0] == experiment.RobustnessTraining("softmax", seed, arguments)
        assert found.count(found[0]) == 1


def test_without_a_twin_no_network_is_trained_for_it_and_none_is_waited_for(arguments):
    arguments.twin = ""
    (network,) = trainings(arguments, "rpc4")
    own = experiment.shares_of(network, arguments)
    assert experiment.jobs_of([network], [own], arguments) == [network, *own.values()]
    for share in own.values():
        assert share.needs == (network,)
        assert "--twin" not in share.words()


def test_a_network_whose_evaluations_are_finished_is_not_trained_again(arguments):
    """As where an archive, which has no weights, was unpacked on another machine."""
    wanted = trainings(arguments, "rpc4", "symmetric-temperature")
    evaluated = [experiment.shares_of(network, arguments) for network in wanted]
    assert wanted[0] in experiment.jobs_of(wanted[:1], evaluated[:1], arguments)
    for share in evaluated[0].values():
        share.folder.mkdir()
        (share.folder / jobs.SUMMARY).touch()
    assert wanted[0] not in experiment.jobs_of(wanted[:1], evaluated[:1], arguments)
    assert wanted[0] in experiment.jobs_of(wanted, evaluated, arguments), "the other network needs it"


def test_seeds_come_one_after_the_other_and_more_of_what_decides_last(arguments):
    found = [(one.recipe, one.seed) for one in experiment.trainings_of(arguments)]
    first = len(experiment.RECIPES)
    assert found[:first] == [(recipe, 0) for recipe in experiment.RECIPES]
    assert found[first] == (experiment.RECIPES[0], 1)
    assert found[3 * first :] == [(recipe, seed) for seed in (3, 4) for recipe in experiment.DECIDING]
