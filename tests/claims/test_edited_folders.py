"""Run folders edited by hand: a field that is gone or of another kind is named with its file, and never a traceback."""

import copy

import pytest

from attnaudit.claims.jury import judge
from attnaudit.claims.meanings import RecordKind
from attnaudit.claims.registry import claims_about
from attnaudit.errors import RunFolderError
from attnaudit.records.evaluated_networks import open_evaluations
from attnaudit.records.training import open_trainings
from attnaudit.report.accuracy_by_strength import strength_records
from attnaudit.report.seed_gains import gain_records
from attnaudit.report.training_figures import accuracy_records, score_records
from tests.claims.evaluations import GAIN, pairs, write_evaluation
from tests.sealed import content_of, seal
from tests.training_runs import write_course, write_training


def judge_trainings(*paths):
    trainings = open_trainings(paths)
    verdicts = judge(claims_about(RecordKind.TRAINING), trainings).verdicts
    return verdicts, accuracy_records(trainings), score_records(trainings)


def judge_evaluation(path):
    evaluations = open_evaluations([path])
    verdicts = judge(claims_about(RecordKind.EVALUATION), evaluations).verdicts
    return verdicts, strength_records(evaluations), gain_records(evaluations)


def watched(folder):
    path = write_training(folder / "watched", epochs=(0, 1), layers=1, heads=1)
    return path, lambda: judge_trainings(path)


def compared(folder):
    accuracies = [0.3 + 0.01 * epoch for epoch in range(10)]
    softmax = write_course(folder / "softmax", accuracies)
    path = write_course(folder / "scaled", accuracies, attention="scaled", options={"form": "alpha"})
    return path, lambda: judge_trainings(path, softmax)


def evaluated(folder):
    path = write_evaluation(folder / "evaluated", pairs(GAIN[:2], GAIN[:2]))
    return path, lambda: judge_evaluation(path)


FILES = [(watched, "run.json"), (compared, "run.json"), (compared, "history.json"), (evaluated, "run.json"),
         (evaluated, "summary.json")]  # fmt: skip
GONE = object()


def edited(content, place, value):
    """The content with one value replaced, or gone."""
    found = copy.deepcopy(content)
    *above, last = place
    node = found
    for name in above:
        node = node[name]
    if value is GONE:
        del node[last]
    else:
        node[last] = value
    return found


def places(content):
    """Of every value in a file; of a list, those of its first two entries."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content[:2])
    for name, value in pairs:
        yield (name,)
        if isinstance(value, dict | list):
            yield from ((name, *deeper) for deeper in places(value))


def refusal(judge):
    """What is said of a folder that cannot be judged; None of one that can."""
    try:
        judge()
    except RunFolderError as error:
        return str(error)
    return None


@pytest.mark.parametrize(("write", "name"), FILES)
def test_no_edit_of_one_value_ends_in_a_traceback(tmp_path, write, name):
    path, judge = write(tmp_path)
    content = content_of(path / name)
    assert judge()[0]
    said = []
    for place in places(content):
        for value in (GONE, None, "x", -1, [], {}):
            seal(path / name, edited(content, place, value))
            said.append(refusal(judge))
    refused = list(filter(None, said))
    assert len(refused) > len(said) / 2
    assert all("\n" not in words and (path.name in words or name in words) for words in refused)


EDITS = [
    (watched, "run.json", ("identity", "seed"), "identity.seed is missing"),
    (watched, "run.json", ("identity", "recipe", "name"), "identity.recipe.name is missing"),
    (watched, "run.json", ("identity", "recipe", "model"), "identity.recipe.model is missing"),
    (watched, "run.json", ("steps_per_epoch",), "steps_per_epoch is missing"),
    (compared, "run.json", ("identity", "recipe", "model", "attention"), "model.attention is missing"),
    (compared, "run.json", ("identity", "recipe", "model", "attention_layers"), "attention_layers is missing"),
    (compared, "run.json", ("identity", "recipe", "model", "attention_options"), "attention_options is missing"),
    (compared, "history.json", ("epochs", 1, "epoch"), "epochs[1].epoch is missing"),
    (compared, "history.json", ("epochs", 1, "test_accuracy"), "epochs[1].test_accuracy is missing"),
    (evaluated, "run.json", ("models",), "models is missing"),
    (evaluated, "run.json", ("images",), "images is missing"),
    (evaluated, "run.json", ("models", 0, "label"), "models[0].label is missing"),
    (evaluated, "run.json", ("models", 0, "fingerprint"), "models[0].fingerprint is missing"),
    (evaluated, "run.json", ("models", 0, "card", "facts"), "models[0].card.facts is missing"),
    (evaluated, "run.json", ("models", 0, "card", "facts", "recipe"), "models[0].card: facts.recipe is missing"),
    (evaluated, "run.json", ("models", 1, "card", "architecture"), "models[1].card.architecture is missing"),
    (evaluated, "run.json", ("models", 1, "card", "architecture", "attention"), "attention is missing"),
    (evaluated, "run.json", ("models", 1, "card", "architecture", "depth"), "depth is missing"),
    (evaluated, "summary.json", ("accuracies",), "accuracies is missing"),
    (evaluated, "summary.json", ("accuracies", 0), "it has no accuracy of sym-0 on clean images"),
    (evaluated, "summary.json", ("accuracies", 2, "accuracy"), "accuracies[2].accuracy is missing"),
    (evaluated, "summary.json", ("accuracies", 2, "condition", "norm"), "accuracies[2].condition.norm is missing"),
    (evaluated, "summary.json", ("checks",), "checks is missing"),
    (evaluated, "summary.json", ("checks", 0, "passed"), "checks[0].passed is missing"),
]


@pytest.mark.parametrize(("write", "name", "place", "fault"), EDITS, ids=[f"{e[1]}: {e[3]}" for e in EDITS])
def test_what_is_gone_is_named_with_its_file(tmp_path, write, name, place, fault):
    path, judge = write(tmp_path)
    content = content_of(path / name)
    seal(path / name, edited(content, place, GONE))
    with pytest.raises(RunFolderError) as caught:
        judge()
    assert str(caught.value).startswith(f"{path / name} is not readable as ")
    assert fault in str(caught.value)


def test_an_attention_that_there_is_not_is_named_with_its_network(tmp_path):
    path, judge = evaluated(tmp_path)
    content = content_of(path / "run.json")
    options = ("models", 1, "card", "architecture", "attention_options")
    for value, fault in (
        ({"iterations": "x"}, "iterations must be a whole number"),
        ({"iterations": 0}, "≥ 1, got 0"),
        ({"preset": []}, "preset"),
    ):
        seal(path / "run.json", edited(content, options, value))
        with pytest.raises(RunFolderError, match=rf"rpc4-0 in run\.json .*{fault}"):
            judge()
