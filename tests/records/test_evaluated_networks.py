"""Evaluations in folders, and what several of them amount to."""

import json

import pytest

from attnaudit.errors import RunFolderError
from attnaudit.records.evaluated_networks import open_evaluation, open_evaluations
from attnaudit.records.evaluation import ConditionKind
from attnaudit.records.run_folder import FORMAT
from attnaudit.records.verdict import Finding, VerdictWord
from tests.claims.evaluations import CONTROLS, GAIN, LOSS, ROBUST, SYMMETRIC, judged, network, pairs, write_evaluation
from tests.sealed import content_of, seal


def test_corruption_and_attack_may_lie_in_two_folders(tmp_path):
    networks = pairs(GAIN, GAIN)
    paths = [write_evaluation(tmp_path / kind, networks, kinds=("clean", kind)) for kind in ("corruption", "attack")]
    (verdict,) = judged(ROBUST, *paths)
    assert verdict.word is VerdictWord.SUPPORTED


def test_networks_evaluated_alike_on_the_same_images_are_compared_across_folders(tmp_path):
    networks = pairs(GAIN, GAIN)
    first = write_evaluation(tmp_path / "first", networks[:3], data="same")
    second = write_evaluation(tmp_path / "second", networks[3:], data="same")
    (verdict,) = judged(ROBUST, first, second)
    assert verdict.word is VerdictWord.SUPPORTED
    assert verdict.reason.count("on 3 seeds") == 2
    elsewhere = write_evaluation(tmp_path / "elsewhere", networks[3:])
    (apart,) = judged(ROBUST, first, elsewhere)
    assert "on one seed" in apart.reason


def test_conditions_of_one_network_add_up_across_folders_and_so_do_its_failed_checks(tmp_path):
    masked = pairs(GAIN, GAIN, masked=("noise is not stronger than the gradient",))
    corrupted = write_evaluation(tmp_path / "c", pairs(GAIN, GAIN), kinds=("clean", "corruption"), data="same")
    attacked = write_evaluation(tmp_path / "a", masked, kinds=("clean", "attack"), data="same")
    (joined,) = open_evaluations([corrupted, attacked])
    assert len(joined.networks) == 6
    assert {own.condition.kind for own in joined.networks[0].accuracies} == {"clean", "corruption", "attack"}
    (verdict,) = judged(ROBUST, corrupted, attacked)
    assert verdict.word is VerdictWord.UNDECIDED


def test_attacks_of_other_strength_or_origin_are_not_compared_across_folders(tmp_path):
    networks = pairs(GAIN, GAIN)
    baseline, ours = networks[::2], networks[1::2]
    for place, how in enumerate(({"steps": 1}, {"source": "another twin"})):
        one = write_evaluation(tmp_path / f"b{place}", baseline, data="same")
        other = write_evaluation(tmp_path / f"o{place}", ours, data="same", **how)
        (verdict,) = judged(ROBUST, one, other)
        assert (verdict.word, verdict.finding) == (VerdictWord.UNDECIDED, Finding.NOT_MEASURED)


def test_two_results_for_one_network_and_condition_are_refused(tmp_path):
    """Whichever folder comes first."""
    first = write_evaluation(tmp_path / "first", pairs(GAIN, GAIN), data="same")
    second = write_evaluation(tmp_path / "second", pairs(LOSS, LOSS), data="same")
    for paths in ((first, second), (second, first)):
        with pytest.raises(RunFolderError, match=r"rpc4-0 keeps \d+\.\d% in one folder and \d+\.\d% in another"):
            open_evaluations(paths)


@pytest.mark.parametrize("how", [{"source": "another twin"}, {"steps": 50}, {"norm": "rms"}])
def test_a_network_may_hold_otherwise_under_another_condition(tmp_path, how):
    norm = how.pop("norm", "max")
    first = write_evaluation(tmp_path / "first", [network("sym", SYMMETRIC, 0)], data="same", kinds=("clean", "attack"))
    other = [network("sym", SYMMETRIC, 0, attacked=0.1, norm=norm)]
    second = write_evaluation(tmp_path / "second", other, data="same", kinds=("clean", "attack"), **how)
    ((joined,),) = (own.networks for own in open_evaluations([first, second]))
    assert len(joined.under(ConditionKind.ATTACK)) == 12


def test_gradients_need_to_be_checked_in_one_of_the_folders(tmp_path):
    """Of the images that decide or of fewer."""
    deciding = write_evaluation(tmp_path / "deciding", pairs(GAIN, GAIN), checked=False)
    checked = write_evaluation(tmp_path / "checked", pairs(GAIN, GAIN), kinds=("clean", "attack"), images=200)
    for paths in ((deciding, checked), (checked, deciding)):
        (verdict,) = judged(ROBUST, *paths)
        assert verdict.word is VerdictWord.SUPPORTED


def test_one_network_by_two_names_is_one(tmp_path):
    networks = pairs(GAIN, GAIN)
    corrupted = write_evaluation(tmp_path / "c", networks, kinds=("clean", "corruption"), data="same")
    attacked = write_evaluation(tmp_path / "a", networks, kinds=("clean", "attack"), data="same")
    for name in ("run.json", "summary.json"):
        text = json.dumps(content_of(attacked / name))
        renamed = text.replace('"label": "', '"label": "/abs/').replace('"model": "', '"model": "/abs/')
        seal(attacked / name, json.loads(renamed))
    (verdict,) = judged(ROBUST, corrupted, attacked)
    assert verdict.word is VerdictWord.SUPPORTED


def test_a_check_that_fails_in_another_evaluation_counts(tmp_path):
    """As AutoAttack's, of fewer networks and images."""
    main = write_evaluation(tmp_path / "main", pairs(GAIN, GAIN))
    failing = pairs(GAIN, GAIN, masked=("AutoAttack leaves no more than PGD, and hardly less",))[:2]
    strongest = write_evaluation(tmp_path / "strongest", failing, images=200)
    for paths in ((main, strongest), (strongest, main)):
        (verdict,) = judged(ROBUST, *paths)
        assert verdict.word is VerdictWord.UNDECIDED
        assert "1 of its networks fails a check" in verdict.reason


def test_an_unfinished_or_damaged_evaluation_is_named(tmp_path):
    path = write_evaluation(tmp_path / "run", pairs(GAIN, GAIN))
    (path / "summary.json").write_text("{}")
    with pytest.raises(RunFolderError, match=r"summary\.json is not readable as the summary of an evaluation"):
        open_evaluation(path)
    (path / "summary.json").unlink()
    with pytest.raises(RunFolderError, match="not finished"):
        open_evaluation(path)
    seal(path / "run.json", {"format": FORMAT, "identity": {"kind": "training"}})
    with pytest.raises(RunFolderError, match="holds a training, not an evaluation of robustness"):
        open_evaluation(path)
    with pytest.raises(RunFolderError, match="nowhere"):
        open_evaluation(tmp_path / "nowhere")


def test_a_summary_of_other_inputs_than_its_run_is_refused(tmp_path):
    path, other = (write_evaluation(tmp_path / str(n), pairs(GAIN, GAIN), images=n) for n in (500, 2000))
    (path / "summary.json").write_bytes((other / "summary.json").read_bytes())
    with pytest.raises(RunFolderError, match=r"summary\.json is of other inputs than run\.json"):
        open_evaluation(path)


def test_of_two_evaluations_the_one_with_more_images_counts(tmp_path):
    few = write_evaluation(tmp_path / "few", pairs(LOSS, LOSS), images=10)
    many = write_evaluation(tmp_path / "many", pairs(GAIN, GAIN), images=1000)
    for paths in ((few, many), (many, few)):
        (verdict,) = judged(ROBUST, *paths)
        assert verdict.word is VerdictWord.SUPPORTED


def test_of_two_evaluations_the_one_with_more_seeds_counts_before_the_one_with_more_images(tmp_path):
    many = write_evaluation(tmp_path / "many", pairs(LOSS[:2], LOSS[:2]), images=100_000)
    seeds = write_evaluation(tmp_path / "seeds", pairs(GAIN, GAIN), images=10_000)
    (verdict,) = judged(ROBUST, many, seeds)
    assert verdict.word is VerdictWord.SUPPORTED


def test_attentions_that_trained_to_the_same_weights_are_two_networks(tmp_path):
    """As symmetric attention and one step of pursuit do where no key is large enough to be clipped."""
    networks = [network("sym", SYMMETRIC, 0), network("one", CONTROLS["one"], 0, corrupted=0.01, masked=("noise",))]
    paths = [write_evaluation(tmp_path / name, networks, data="same") for name in ("first", "second")]
    for path in paths:
        run = content_of(path / "run.json")
        for model in run["models"]:
            model["fingerprint"] = "equal"
        seal(path / "run.json", run)
    (joined,) = open_evaluations(paths)
    assert [(own.label, own.masked) for own in joined.networks] == [("sym-0", ()), ("one-0", ("noise",))]
