"""Labelled sentences from tab-separated text, and what is said of a file that is not."""

import pytest

from attnaudit.errors import InputError
from attnaudit.sources.sentences import read_sentences, training_and_test_sentences
from tests.sentence_data import write_data, write_tsv

GOOD = [("it is fine", 1), ("it is not", 0)]


def test_columns_may_stand_in_any_order_among_others(tmp_path):
    (tmp_path / "a.tsv").write_text("label\tid\tsentence\n1\tx\t it is fine \r\n0\ty\tit is not\n")
    found = read_sentences(tmp_path / "a.tsv")
    assert found.sentences == ("it is fine", "it is not")
    assert found.labels.tolist() == [1, 0]
    assert found.classes == 2


def test_quotes_are_letters(tmp_path):
    write_tsv(tmp_path / "a.tsv", [('" it is', 0), ("it's", 1)])
    assert read_sentences(tmp_path / "a.tsv").sentences == ('" it is', "it's")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("it is fine\t1\nit is not\t0\n", "must begin with a line that names its columns, sentence and label"),
        ("sentence,label\nfine,1\n", "got 'sentence,label'"),
        ("sentence\tlabel\nfine\tpositive\nnot\t0\n", r"Line 2 .*label must be the number of a class.*got 'positive'"),
        ("sentence\tlabel\nfine\t-1\nnot\t0\n", r"Line 2 .*got '-1'"),
        ("sentence\tlabel\nfine\t1.0\nnot\t0\n", r"Line 2 .*got '1.0'"),
        ("sentence\tlabel\nfine\t99999999999\nnot\t0\n", r"Line 2 .*got '99999999999'"),
        ("sentence\tlabel\nfine\t1\n  \t0\n", "Line 3 of .* has no sentence"),
        ("sentence\tlabel\nfine\t1\nnot\n", "Line 3 of .* must have 2 columns, as the first line, got 1"),
        ("sentence\tlabel\nfine\t1\nnot\t1\n", "at least 2 classes, got 2 sentences of 1 class"),
        ("sentence\tlabel\tlabel\nfine\t1\t0\nnot\t0\t1\n", "has 2 columns named label: rename all but one"),
        ("sentence\tlabel\n", "at least 2 classes, got 0 sentences of 0 classes"),
        ("", "is empty"),
    ],
)
def test_what_cannot_be_learned_from_is_said_in_a_sentence(tmp_path, text, words):
    (tmp_path / "a.tsv").write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        read_sentences(tmp_path / "a.tsv")
    assert "\n" not in str(caught.value)


def test_the_fingerprint_changes_with_a_label_and_with_a_word(tmp_path):
    files = [GOOD, [("it is fine", 1), ("it is not", 2)], [("it was fine", 1), ("it is not", 0)]]
    found = {read_sentences(write_tsv(tmp_path / f"{place}.tsv", rows)).fingerprint for place, rows in enumerate(files)}
    assert len(found) == 3


def test_a_limit_takes_sentences_at_even_distances(tmp_path):
    train, _ = training_and_test_sentences(write_data(tmp_path))
    assert train.evenly_spaced(4).sentences == tuple(train.sentences[place] for place in (0, 12, 24, 36))
    assert train.evenly_spaced(None) is train


def test_a_limit_keeps_the_number_of_classes(tmp_path):
    rows = [("it is fine", 0), ("it is not", 1), ("it is", 2)] * 6
    few = read_sentences(write_tsv(tmp_path / "a.tsv", rows)).evenly_spaced(4)
    assert sorted(set(few.labels.tolist())) == [0, 1]
    assert few.classes == few.evenly_spaced(2).classes == 3


def test_a_label_that_training_lacks_is_refused(tmp_path):
    write_data(tmp_path)
    write_tsv(tmp_path / "test.tsv", [*GOOD, ("who knows", 2)])
    with pytest.raises(InputError, match=r"test.tsv has the label 2, which no sentence of .*train.tsv has"):
        training_and_test_sentences(tmp_path)


def test_a_folder_without_one_of_the_files_is_said(tmp_path):
    write_tsv(tmp_path / "train.tsv", GOOD)
    with pytest.raises(InputError, match=r"has no test.tsv: give a folder with train.tsv and test.tsv"):
        training_and_test_sentences(tmp_path)


def test_a_folder_is_no_file_of_sentences(tmp_path):
    with pytest.raises(InputError, match=r"is a folder: give a file of tab-separated text with columns sentence and"):
        read_sentences(tmp_path)
