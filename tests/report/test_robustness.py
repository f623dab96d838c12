"""Tables, curves and page of an evaluation."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from attnaudit.records.evaluation import (
    Accuracy,
    Condition,
    ConditionKind,
    EvaluationScore,
    EvaluationSummary,
    MaskingCheck,
    Quantity,
)
from attnaudit.report.page.robustness import write_robustness_page
from attnaudit.report.robustness import (
    accuracy_rows,
    lines,
    models_of,
    robustness_answers,
    robustness_report,
    score_lines,
    with_short_names,
)
from attnaudit.report.robustness_figures import accuracy_curves
from attnaudit.robustness.conditions import CLEAN
from attnaudit.statistics.intervals import wilson_interval
from tests.report.test_page import HOSTILE, Elements


def accuracy(model, condition, right, images=100):
    return Accuracy(
        model, condition, "source", images, right, right / images, wilson_interval(right, images), None, 1.0
    )


def summary(*models):
    conditions = [
        (CLEAN, 90),
        *((Condition(ConditionKind.CORRUPTION, "fog", float(severity)), 80 - 10 * severity) for severity in (1, 3)),
        *((Condition(ConditionKind.ATTACK, "pgd", e / 255, "max", 20), 50 - 10 * e) for e in (1, 4)),
        (Condition(ConditionKind.ATTACK, "cw", 1 / 255, "rms", 200), 33),
    ]
    return EvaluationSummary(
        tuple(accuracy(model, condition, right) for model in models for condition, right in conditions),
        tuple(EvaluationScore(model, "mCE against AlexNet", 0.8, (0.7, 0.9)) for model in models),
        tuple(
            MaskingCheck(model, "a check", "a finding", passed) for model in models for passed in (True, False, None)
        ),
    )


def printed(content, **options):
    console = Console(file=io.StringIO(), width=120)
    console.print(robustness_report(content, **options))
    return console.file.getvalue()


def test_scores_have_a_column_for_each_model_and_a_dash_where_one_has_none():
    """Three models, two abreast: the third has a table of its own, without a title."""
    content = summary("a", "b", "c")
    content = replace(content, scores=(*content.scores, EvaluationScore("b", "IoU of sky", 0.5, (0.4, 0.6))))
    assert score_lines(content) == [
        ("mCE against AlexNet", ["0.800 [0.700, 0.900]"] * 3),
        ("IoU of sky", ["–", "0.500 [0.400, 0.600]", "–"]),
    ]
    text = printed(content)
    assert text.count("IoU of sky") == 2
    assert text.count("Scores [95 %") == 1


def segmented(*models):
    """Of networks that segment: 60 % less what a corruption takes, and more by the weaker quantities."""
    conditions = [
        (CLEAN, 0.6),
        *((Condition(ConditionKind.CORRUPTION, "fog", float(s)), 0.6 - 0.1 * s) for s in (1, 3)),
    ]
    more = {Quantity.MEAN_IOU: 0.0, Quantity.MEAN_ACCURACY: 0.1, Quantity.PIXEL_ACCURACY: 0.2}
    return EvaluationSummary(
        tuple(
            Accuracy(model, condition, "source", 40, None, own + add, (own, own + 0.3), None, 1.0, quantity, 2)
            for model in models
            for condition, own in conditions
            for quantity, add in more.items()
        ),
        (),
        (),
    )


def test_of_networks_that_segment_there_is_a_table_for_each_quantity(tmp_path):
    found = segmented("m")
    assert robustness_answers(found) == ["m has an mIoU of 60.0% on clean images and 40.0% on corrupted ones."]
    assert robustness_answers(segmented(*"abcde")) == [
        "5 models have an mIoU of 60.0% to 60.0% on clean images and 40.0% to 40.0% on corrupted ones."
    ]
    page = write_robustness_page(found, "40 images", None, tmp_path / "page.html").read_text()
    for text in (" ".join(printed(found).split()), page):
        for words, clean in (("mIoU", "60.0%"), ("Mean accuracy", "70.0%"), ("Pixel accuracy", "80.0%")):
            assert f"{words} on 40 images [95 %], without 2 of the classes, which no pixel has" in text
            assert clean in text
    rows = accuracy_rows(found)
    assert [row["quantity"] for row in rows[:3]] == ["mean_iou", "mean_accuracy", "pixel_accuracy"]
    assert {(row["right"], row["missing_classes"]) for row in rows} == {(None, 2)}


def test_what_is_known_of_a_single_picture_is_shown_without_an_interval(tmp_path):
    known = segmented("m")
    alone = tuple(replace(entry, images=1, interval=None) for entry in known.accuracies)
    found = replace(known, accuracies=alone, scores=(EvaluationScore("m", "IoU of sky", 0.5, None),))
    assert score_lines(found) == [("IoU of sky", ["0.500"])]
    page = write_robustness_page(found, "1 image", None, tmp_path / "page.html").read_text()
    for text in (printed(found), page):
        assert "60.0%" in text
        assert "60.0% [" not in text
    assert {(row["low"], row["high"]) for row in accuracy_rows(found)} == {(None, None)}


def test_the_answer_is_in_a_sentence_and_doubts_attacks_that_failed_a_check(tmp_path):
    found = summary("m")
    attacked = "10.0% under the strongest attack (pgd, ε = 4/255)"
    answer = f"m is right on 90.0% of clean images, {attacked} and 60.0% of corrupted ones"
    assert robustness_answers(found) == [f"{answer}; but the attacks cannot be trusted (a check failed)."]
    assert robustness_answers(replace(found, checks=())) == [f"{answer}."]
    clean = replace(found, accuracies=found.accuracies[:1], checks=())
    assert robustness_answers(clean) == ["m is right on 90.0% of clean images."]
    page = write_robustness_page(found, "100 images", None, tmp_path / "page.html").read_text()
    assert page.index(answer) < page.index("<table>")


def test_outliers_alone_have_no_answer():
    outliers = accuracy("m", Condition(ConditionKind.OUTLIERS, "outliers", 0.0), 0)
    assert robustness_answers(EvaluationSummary((outliers,), (), ())) == []


def test_severities_are_one_line_and_budgets_are_several():
    assert [words for words, _ in lines(summary("m"))] == [
        "clean",
        "fog, mean of severities 1, 3",
        "pgd, ε = 1/255",
        "pgd, ε = 4/255",
        "cw, ε = 1/255 (rms)",
    ]


def test_a_cell_is_a_share_with_its_interval_or_a_mean_without():
    cells = [cells[0] for _, cells in lines(summary("m"))]
    assert cells[:2] == ["90.0% [82.6%, 94.5%]", "60.0%"]


def test_the_terminal_says_words_for_checks():
    text = printed(summary("m"))
    for words in ("0.800 [0.700, 0.900]", "pass", "FAIL", "not run", "a finding"):
        assert words in text


def test_models_in_one_folder_are_called_without_it():
    models = models_of(with_short_names(summary("runs/a/one", "runs/a/two")))
    assert models == ["one", "two"]
    for kept in (("runs/one",), ("runs/one", "other/one"), ("one", "runs/two")):
        assert models_of(with_short_names(summary(*kept))) == list(kept)


def test_many_models_are_shown_a_few_abreast_and_their_checks_counted():
    text = printed(summary(*(f"runs/model-{number}" for number in range(9))))
    assert text.count("fog, mean of severities") == 5
    wide = printed(summary(*(f"runs/model-{number}" for number in range(9))), wide=True)
    assert wide.count("fog, mean of severities") == 3
    assert text.count("model-8") == 3  # beside its accuracies, its score, and its failed check
    assert "9 models are right on 90.0% to 90.0% of clean images, 10.0% to 10.0% under the strongest attack" in text
    assert text.count("a finding") == 0
    (counted,) = (line for line in text.splitlines() if line.strip().startswith("a check"))
    assert counted.split()[2:5] == ["9", "9", "9"]


def test_the_heading_of_a_page_counts_many_models(tmp_path):
    few = write_robustness_page(summary("runs/one", "runs/two"), "t", None, tmp_path / "few.html").read_text()
    assert "<h1><bdi>one, two</bdi></h1>" in few
    many = write_robustness_page(summary(*"abcd"), "t", None, tmp_path / "many.html").read_text()
    assert "<h1><bdi>4 models</bdi></h1>" in many


def test_markup_in_a_name_is_only_text():
    assert "[bold]m[/bold]" in printed(summary("[bold]m[/bold]", "[/red]"))


def test_csv_has_every_number():
    rows = accuracy_rows(summary("m"))
    assert len(rows) == 6
    assert {row["kind"] for row in rows} == {"clean", "corruption", "attack"}
    assert rows[0]["low"] == pytest.approx(0.826, abs=1e-3)


def test_curves_are_drawn_the_same_every_time(tmp_path):
    pytest.importorskip("matplotlib")
    paths = [tmp_path / name for name in ("a.svg", "b.svg", "a.pdf", "b.pdf")]
    for start in (0, 1):
        assert accuracy_curves(summary("one", "two"), paths[start::2])
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[2].read_bytes() == paths[3].read_bytes()
    text = paths[0].read_text()
    for words in ("pgd", "cw", "corruptions", "accuracy", "one", "two"):
        assert words in text


def test_a_single_severity_is_a_whole_number_on_its_axis(tmp_path):
    pytest.importorskip("matplotlib")
    one = Condition(ConditionKind.CORRUPTION, "fog", 3.0)
    found = EvaluationSummary((accuracy("m", CLEAN, 90), accuracy("m", one, 60)), (), ())
    assert accuracy_curves(found, [tmp_path / "x.svg"])
    drawn = (tmp_path / "x.svg").read_text()
    assert ">3</text>" in drawn
    assert ">2.85</text>" not in drawn


def test_curves_of_sentences_are_over_the_share_of_words(tmp_path):
    (tmp_path / "curves.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'></svg>")
    noise = accuracy("m", Condition(ConditionKind.NOISE, "typos", 0.1), 80)
    sentences = EvaluationSummary((accuracy("m", CLEAN, 90), noise), (), (), examples="sentences")
    for found, heading in ((sentences, "Over the share of words"), (summary("m"), "Over ε and severity")):
        page = write_robustness_page(found, "t", tmp_path / "curves.svg", tmp_path / "page.html").read_text()
        assert f"<h2>{heading}</h2>" in page


def test_without_conditions_there_are_no_curves(tmp_path):
    alone = EvaluationSummary((accuracy("m", CLEAN, 9, 10),), (), ())
    assert not accuracy_curves(alone, [tmp_path / "x.svg"])
    assert not (tmp_path / "x.svg").exists()


def test_the_page_fetches_nothing_and_lets_nothing_run(tmp_path):
    (tmp_path / "curves.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'></svg>")
    names = HOSTILE[:6]
    path = write_robustness_page(summary(*names), "ten images", tmp_path / "curves.svg", tmp_path / "x.html")
    found = Elements(path.read_text())
    for tag, attributes in found.found:
        assert tag not in ("script", "link", "iframe", "object", "base")
        assert not [name for name in attributes if name.startswith("on")]
        assert attributes.get("src", "data:").startswith("data:")
    assert "default-src 'none'" in path.read_text()
    for name in names:
        assert name in found.text
    for words in ("ten images", "pgd, ε = 4/255", "FAIL", "0.800 [0.700, 0.900]"):
        assert words in found.text


def test_a_page_without_curves_scores_and_checks_is_a_page(tmp_path):
    path = write_robustness_page(
        EvaluationSummary((accuracy("m", CLEAN, 9, 10),), (), ()), "ten images", None, tmp_path / "x.html"
    )
    text = Elements(path.read_text()).text
    assert "90.0%" in text
    assert "believed" not in text
