"""Training on text: it learns, its folder is a model that reads text, and unusable text is refused."""

import json
import math

import pytest

from attnaudit.capture import capture
from attnaudit.errors import InputError, NumericalError, RunFolderError, UsageError
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.cards import read_card
from attnaudit.sources.corpora import training_and_test_text
from attnaudit.sources.words import Vocabulary, words_of
from attnaudit.training.batching import Layout
from attnaudit.training.distributed import Ranks
from attnaudit.training.loop import train
from attnaudit.training.perplexity import robust_perplexity
from attnaudit.training.recipe_file import read_recipe
from attnaudit.training.tasks import make_task, read_data
from tests.training.conftest import LINE
from tests.training.test_loop import same, weights


@pytest.fixture
def recipe_file(text_recipe_file):
    return text_recipe_file


@pytest.fixture
def halves(corpus):
    return training_and_test_text(corpus)


def test_training_learns_what_can_be_learned(recipe_file, halves, tmp_path):
    recipe = read_recipe(str(recipe_file), ["epochs=20", "monitor.contexts=0", "average=null"])
    first, *_, last = train(recipe, halves, tmp_path / "run").history
    facts = json.loads((tmp_path / "run" / "summary.json").read_text())["training"]
    assert last["test_perplexity"] < 2 < facts["unigram_perplexity"] < first["test_perplexity"] * 2
    assert last["test_perplexity_low"] <= last["test_perplexity"] <= last["test_perplexity_high"]
    assert last["swapped_perplexity"] > last["test_perplexity"]
    assert {name: facts[name] for name in last} == last


def test_a_trained_folder_is_a_model_that_reads_text(recipe_file, halves, tmp_path):
    trained = train(read_recipe(str(recipe_file), ["epochs=1", "average=null"]), halves, tmp_path / "run")
    spec = parse_model(str(trained.path))
    assert spec.inputs.kind == "text"
    model = load_model(spec)
    assert same(model.module.state_dict(), weights(trained.path))
    assert model.preprocess is None
    seen = capture(model.module, model.tokenise([LINE, "two"], 256))
    assert len(seen.layers) == 2
    assert seen.certificate.worst < 1e-5
    vocabulary = Vocabulary(read_card(trained.path).vocabulary)
    numbers = vocabulary.numbers(words_of(halves[1].text))
    again = robust_perplexity(model.module, numbers, vocabulary, rate=0.5, batch=4)
    assert again.clean.value == pytest.approx(trained.history[-1]["test_perplexity"], rel=1e-6)
    assert again.swapped.value == pytest.approx(trained.history[-1]["swapped_perplexity"], rel=1e-6)


def test_the_vocabulary_is_that_of_the_training_half(recipe_file, halves):
    task = make_task(read_recipe(str(recipe_file)), halves)
    assert set(task.vocabulary.words) == {"<unk>", "<eos>", *LINE.split()}
    assert task.recipe.model.vocabulary == len(task.vocabulary) == 12
    assert task.test[-2] == 0  # unheard


def test_the_unigram_perplexity_is_that_of_word_frequencies(recipe_file, tmp_path):
    (tmp_path / "train.txt").write_text("a a a b\n" * 4)
    (tmp_path / "test.txt").write_text("b a unheard\n")
    task = make_task(read_recipe(str(recipe_file)), training_and_test_text(tmp_path))
    seen = {"a": 12 + 1, "b": 4 + 1, "<eos>": 4 + 1, "<unk>": 0 + 1}
    predicted = ["a", "<unk>", "<eos>"]  # every word but the first
    expected = math.prod(sum(seen.values()) / seen[word] for word in predicted) ** (1 / len(predicted))
    assert task.facts["unigram_perplexity"] == pytest.approx(expected)


def test_a_context_that_is_not_full_is_not_learned_from(recipe_file, halves):
    task = make_task(read_recipe(str(recipe_file)), halves)
    assert task.examples == (20 * 11 - 1) // 8


def test_other_words_in_the_same_folder_are_refused(recipe_file, halves, corpus, tmp_path):
    train(read_recipe(str(recipe_file), ["epochs=1"]), halves, tmp_path / "run")
    (corpus / "test.txt").write_text(LINE * 3)
    with pytest.raises(RunFolderError, match="holds a run with other data"):
        train(read_recipe(str(recipe_file), ["epochs=1"]), training_and_test_text(corpus), tmp_path / "run")


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        (["model.context=300"], InputError, "300 words of a context, got 220"),
        (["batch=64"], UsageError, "batch must be ≤ the 27 contexts of the data, got 64"),
        (["min_count=21"], InputError, "21 times"),
    ],
)
def test_text_that_cannot_be_learned_from_is_refused_and_leaves_no_folder(
    recipe_file, halves, tmp_path, changes, error, sentence
):
    with pytest.raises(error) as raised:
        train(read_recipe(str(recipe_file), changes), halves, tmp_path / "run")
    assert sentence in str(raised.value)
    assert not (tmp_path / "run").exists()


def test_a_training_that_diverges_says_so(recipe_file, halves, tmp_path):
    changes = ["optimiser.rate=1e30", "optimiser.clip=null", "optimiser.warmup_epochs=0", "monitor.contexts=0"]
    with pytest.raises(NumericalError, match=r"loss is nan before step|loss per word must be < 700"):
        train(read_recipe(str(recipe_file), changes), halves, tmp_path / "run")


def test_a_recipe_for_text_takes_no_images(recipe_file, data_set):
    from attnaudit.sources.labelled import training_and_test

    with pytest.raises(UsageError, match="Recipe tiny needs data of contexts, got a LabelledImages"):
        make_task(read_recipe(str(recipe_file)), training_and_test(data_set))


@pytest.mark.realdata
def test_wikitext_without_its_training_part_is_learned_from_one_part_and_tested_on_another(data_folder):
    recipe = read_recipe("lm")
    train_half, test_half = read_data(recipe, data_folder / "wikitext")
    assert (train_half.path.name, test_half.path.name) == ("wiki.test.raw", "valid.txt")
    sentences = [{line for line in half.text.split("\n") if len(line) > 100} for half in (train_half, test_half)]
    assert not sentences[0] & sentences[1]
    vocabulary = Vocabulary.of(train_half.words(), recipe.min_count)
    unknown = (vocabulary.numbers(test_half.words()) == 0).double().mean()
    assert 5_000 < len(vocabulary) < 20_000
    assert unknown < 0.2  # the two are split into words alike


def test_ranks_monitor_other_contexts_of_the_test_half(recipe_file, halves):
    task = make_task(read_recipe(str(recipe_file), []), halves)
    seen = []
    for rank in range(2):
        layout = Layout(task.examples, task.recipe.batch, 0, Ranks(rank, 2), task.recipe.examples)
        seen += task.feed(layout, "cpu", 0).monitor_inputs(0, 2)["test"].tolist()
    one = task.feed(Layout(task.examples, task.recipe.batch, 0, Ranks(), task.recipe.examples), "cpu", 0)
    assert sorted(seen) == sorted(one.monitor_inputs(0, 4)["test"].tolist())
    assert len(seen) == 4


def test_language_models_say_nothing_of_accuracy_and_what_the_monitor_saw_counts(recipe_file, halves, tmp_path):
    from attnaudit.claims.jury import judge
    from attnaudit.claims.scaled_attention_converges_faster import CLAIM
    from attnaudit.records.training import open_trainings
    from attnaudit.report.training_figures import accuracy_records

    plain = ["epochs=1", "model.attention_layers=null", "model.other_attention=softmax", "model.attention_options={}"]
    paths = [
        train(read_recipe(str(recipe_file), [*plain, f"model.attention={name}"]), halves, tmp_path / name).path
        for name in ("softmax", "scaled")
    ]
    trainings = open_trainings(paths)
    assert judge([CLAIM], trainings).verdicts == ()
    assert accuracy_records(trainings) == []
    assert all(training.is_monitored for training in trainings)
