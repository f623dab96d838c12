"""Sentences whose class is whether the dog runs, and a tiny encoder that can be fine-tuned on them."""

import itertools

from tests.sources.hf_folders import tiny_bert

SUBJECTS, VERBS = ("the cat", "the dog", "the tree"), ("sleeps", "runs")
PLACES = ("under the tree", "over the cat", "and sleeps", "because the dog runs over the tree")

SMALL = {"context": 16, "dropout": 0.0}


def sentences():
    """(sentence, label), with both labels in every two lines."""
    found = [
        (f"{subject} {verb} {place}", int(verb == "runs"))
        for subject, place, verb in itertools.product(SUBJECTS, PLACES, VERBS)
    ]
    return found * 2


def write_tsv(path, rows, header="sentence\tlabel"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *(f"{sentence}\t{label}" for sentence, label in rows)]) + "\n")
    return path


def write_data(folder):
    """`train.tsv` and `test.tsv`."""
    write_tsv(folder / "train.tsv", sentences())
    write_tsv(folder / "test.tsv", sentences()[:20])
    return folder


def write_encoder(folder):
    return tiny_bert(folder)
