"""Words and their numbers: how a text is split, and what is known of it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnaudit.errors import InputError
from attnaudit.sources.words import LINE_END, UNKNOWN, Vocabulary, words_of

TEXT = " = Title = \n\n the cat saw the dog . \n"


def test_lines_end_in_a_word_of_their_own_and_empty_ones_are_none():
    assert list(words_of(TEXT)) == ["=", "Title", "=", LINE_END, "the", "cat", "saw", "the", "dog", ".", LINE_END]


def test_a_vocabulary_has_the_frequent_words_the_most_frequent_first():
    assert Vocabulary.of(words_of(TEXT), 2).words == (UNKNOWN, LINE_END, "=", "the")


@given(st.lists(st.sampled_from(["a", "b", "c", "d", "e", "<unk>"]), min_size=1), st.integers(1, 3))
def test_known_words_come_back_and_all_others_are_unknown(words, min_count):
    vocabulary = Vocabulary.of([*words, *("z" * min_count)], min_count)
    back = [vocabulary.words[number] for number in vocabulary.numbers(words)]
    assert back == [word if words.count(word) >= min_count else UNKNOWN for word in words]


def test_a_word_that_the_text_itself_marks_as_unknown_is_no_word_of_its_own():
    vocabulary = Vocabulary.of(words_of("a <unk> a <unk>"), 1)
    assert vocabulary.words == (UNKNOWN, LINE_END, "a")
    assert vocabulary.number("<unk>") == vocabulary.number("never seen") == 0


def test_texts_side_by_side_are_cut_and_filled_up_behind_their_words():
    vocabulary = Vocabulary.of(words_of("a b c d"), 1)
    batch = vocabulary.batch(["a b c d", "a"], 4)["input_ids"]
    end, a, b, c, d = (vocabulary.number(word) for word in (LINE_END, *"abcd"))
    assert torch.equal(batch, torch.tensor([[a, b, c, d], [a, end, end, end]]))


def test_a_text_without_frequent_words_is_refused():
    with pytest.raises(InputError, match=r"2 times.* min_count=1"):
        Vocabulary.of(words_of("every word once"), 2)
