"""What networks are shown of sentences, one condition after the other."""

from pathlib import Path

import pytest
import torch
from torch import nn

from attnaudit.records.architecture import EncoderArchitecture
from attnaudit.records.card import SentenceCard
from attnaudit.robustness.conditions import CLEAN, noise_conditions
from attnaudit.robustness.noises import noisy
from attnaudit.robustness.sentences import SentenceExamples, SentenceModel
from attnaudit.robustness.unit import Classifier, EvaluationSettings, EvaluationUnit
from attnaudit.robustness.worker import SentenceWorker
from attnaudit.sources.model import LoadedModel
from attnaudit.sources.sentences import LabelledSentences

tokenizers = pytest.importorskip("tokenizers")
#: The words of the tokenizer by number; AAA is what words are swapped for.
WORDS = ("[PAD]", "AAA", "it", "is", "so", "good")
(SWAPPED,) = noise_conditions(["word-swap"], [1.0])
EXAMPLES = SentenceExamples.drawn(
    LabelledSentences(Path("test.tsv"), ("it is so good", "is it"), torch.tensor([1, 0])), None, 0
)


class Noted(nn.Module):
    """A network that notes the words it is shown."""

    def __init__(self):
        super().__init__()
        self.shown = []

    def forward(self, tokens):
        self.shown.append([" ".join(WORDS[number] for number in row if number) for row in tokens])
        return torch.zeros(len(tokens), 2)


def reader(context=4):
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    rules = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[PAD]"))
    rules.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    card = SentenceCard("noted", EncoderArchitecture(context=context), {"pad_token_id": 0}, rules.to_str(), {})
    return SentenceModel(LoadedModel("noted", Noted(), "noted", "made by a test", card=card))


def show(*units):
    """Each of the networks what it is to see under a condition, by one worker."""
    worker = SentenceWorker(EXAMPLES, EvaluationSettings())
    for model, condition in units:
        subject = Classifier(model, EXAMPLES.selected.labels)
        worker.compute(EvaluationUnit(subject, condition, slice(0, len(EXAMPLES.indices)), "key"))


def test_every_condition_is_applied_to_the_sentences_and_leaves_the_next_one_alone():
    model = reader()
    show((model, CLEAN), (model, SWAPPED), (model, CLEAN))
    clean, swapped = ["it is so good", "is it"], ["AAA AAA AAA AAA", "AAA AAA"]
    assert model.module.shown == [clean, swapped, clean]


def test_networks_of_other_contexts_see_other_parts_of_a_sentence():
    whole, part, again = reader(), reader(context=2), reader()
    show((whole, CLEAN), (part, CLEAN), (again, CLEAN))
    assert whole.module.shown == again.module.shown == [["it is so good", "is it"]]
    assert part.module.shown == [["it is", "is it"]]


def test_every_batch_is_of_its_own_sentences_with_the_noise_of_their_places(tmp_path):
    """Sentences 1, 3 and 4 of five, in batches of two."""
    texts = ("it", "it is so good", "is", "so good", "good is it so")
    data = LabelledSentences(Path("test.tsv"), texts, torch.tensor([0, 1, 0, 0, 1]))
    examples, (half,) = SentenceExamples(data, (1, 3, 4)), noise_conditions(["word-swap"], [0.5])
    worker, model = SentenceWorker(examples, EvaluationSettings(seed=7)), reader()
    subject = Classifier(model, examples.selected.labels)
    found = [worker.compute(EvaluationUnit(subject, half, batch, "key"))[0] for batch in (slice(0, 2), slice(2, 4))]
    expected = [noisy(texts[place], "word-swap", 0.5, place, 7) for place in (1, 3, 4)]
    assert model.module.shown == [expected[:2], expected[2:]]
    assert [table["image"].to_pylist() for table in found] == [[1, 3], [4]]
    assert [table["label"].to_pylist() for table in found] == [[1, 0], [1]]
