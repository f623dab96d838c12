"""Claims about robustness: words from made-up evaluations whose answer is known."""

import json

import pytest
from scipy import stats

from attnaudit.claims.registry import CLAIMS, ROBUSTNESS_CLAIMS, claims_named
from attnaudit.claims.robust_groups import Choice
from attnaudit.claims.verdict import Word
from attnaudit.errors import RunFolderError, UsageError
from attnaudit.evidence.robustness_results import holds_evaluation, open_evaluation, open_evaluations

ROBUST, BECAUSE = ROBUSTNESS_CLAIMS["rpc-robust"], ROBUSTNESS_CLAIMS["rpc-because-of-pcp"]
FIRST = {"attention_layers": [0], "other_attention": "symmetric"}
SYMMETRIC = {"attention": "symmetric"}
RPC = {"attention": "rpc", "attention_options": {"iterations": 4}, **FIRST}
CONTROLS = {
    "one": {**RPC, "attention_options": {"iterations": 1}},
    "random": {**RPC, "attention_options": {"iterations": 4, "sparse": "random"}},
    "tempered": {"attention": "symmetric", "attention_options": {"temperature": 0.3}, **FIRST},
}
EPSILONS = (1 / 255, 2 / 255, 4 / 255)


def network(
    recipe, attention, seed, *, corrupted=0.0, attacked=0.0, pgd=0.0, masked=(), epochs=40, norm="max", sparse=0.2
):
    """A network ahead of the baseline, of 80 % clean, by so much; PGD, which is weaker, by `pgd` more."""
    own = 0.01 * seed
    conditions = [("clean", "clean", 0.0, None, 0.8 + own)]
    conditions += [
        ("corruption", name, float(s), None, 0.6 + own + corrupted) for name in ("fog", "snow") for s in (1, 5)
    ]
    for epsilon, left in zip(EPSILONS, (0.6, 0.42, 0.02), strict=True):
        conditions.append(("attack", "apgd", epsilon, norm, left + own + attacked))
        conditions.append(("attack", "pgd", epsilon, norm, left + own + attacked + 0.05 + pgd))
    architecture = {"depth": 6, "width": 192, "attention_layers": None, "attention_options": {}, **attention}
    facts = {"recipe": recipe, "seed": seed, "epochs": epochs, "attention": {"blocks.0.attn": {"nonzero": sparse}}}
    card = {"architecture": architecture, "facts": facts}
    return f"{recipe}-{seed}", card, conditions, masked


def write_evaluation(
    path, networks, pictures=100_000, kinds=("clean", "corruption", "attack"), *, data=None, checked=True, **how
):
    """In a folder; of pictures of its own unless `data` names some; `how` are the steps and source of conditions."""
    steps, source = how.get("steps", 20), how.get("source", "pictures")
    path.mkdir()
    models = [{"label": label, "fingerprint": label, "card": card} for label, card, _, _ in networks]
    identity = {"kind": "robustness", "data": data or path.name}
    run = {"identity": identity, "models": [*models, {"label": "timm:x", "fingerprint": "x", "card": None}]}
    (path / "run.json").write_text(json.dumps(run | {"pictures": pictures}))
    accuracies = [
        {
            "model": label,
            "condition": dict(zip(("kind", "name", "strength", "norm"), c[:4], strict=True)) | {"steps": steps},
            "source": source,
            "accuracy": c[4],
        }
        for label, _, conditions, _ in networks
        for c in conditions
        if c[0] in kinds
    ]
    checks = [{"model": label, "name": name, "passed": False} for label, _, _, masked in networks for name in masked]
    checks += [{"model": label, "name": "twin", "passed": True if checked else None} for label, _, _, _ in networks]
    (path / "summary.json").write_text(json.dumps({"accuracies": accuracies, "checks": checks}))
    return path


def pairs(corrupted, attacked, **more):
    """Symmetric networks, and RPC-Attention that gains so much over them, seed by seed."""
    found = []
    for seed, (under_corruption, under_attack) in enumerate(zip(corrupted, attacked, strict=True)):
        found.append(network("sym", SYMMETRIC, seed))
        found.append(network("rpc4", RPC, seed, corrupted=under_corruption, attacked=under_attack, **more))
    return found


def judged(claim, *paths):
    return claim.judge(open_evaluations(paths))


GAIN, LOSS, NONE, WIDE = (0.05, 0.051, 0.049), (-0.05, -0.051, -0.049), (0.0, 0.0001, -0.0001), (0.1, -0.1, 0.02)

#: About 0; the interval ends at 3.58 standard deviations (Student's t, two differences, three seeds): 0.8, 1.5 points.
BELOW_A_POINT, BEYOND_A_POINT = (0.0022, 0.0, -0.0022), (0.0042, 0.0, -0.0042)


@pytest.mark.parametrize(
    ("corrupted", "attacked", "word"),
    [
        (GAIN, GAIN, Word.SUPPORTED),
        (GAIN, LOSS, Word.REFUTED),
        (LOSS, GAIN, Word.REFUTED),
        (GAIN, NONE, Word.REFUTED),
        (LOSS, LOSS, Word.REFUTED),
        (NONE, NONE, Word.INDISTINGUISHABLE),
        (GAIN, WIDE, Word.INCONCLUSIVE),
        (GAIN[:1], GAIN[:1], Word.INCONCLUSIVE),
        (BELOW_A_POINT, BELOW_A_POINT, Word.INDISTINGUISHABLE),
        (BEYOND_A_POINT, BEYOND_A_POINT, Word.INCONCLUSIVE),
    ],
)
def test_robust_is_ahead_under_corruption_and_attack_by_more_than_seeds_differ(tmp_path, corrupted, attacked, word):
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", pairs(corrupted, attacked)))
    assert (verdict.model, verdict.word) == ("rpc4", word)


def test_seeds_are_paired(tmp_path):
    """Accuracies differ between seeds by a point, differences by a tenth of that."""
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", pairs((0.005, 0.006, 0.004), GAIN)))
    assert verdict.word is Word.SUPPORTED
    assert "2 corruptions: +0.50 [" in verdict.reason
    assert "clean +0.00" in verdict.reason


def test_the_budget_is_the_one_at_which_the_baseline_keeps_half_and_the_attack_the_strongest(tmp_path):
    path = write_evaluation(tmp_path / "run", pairs(GAIN, LOSS, pgd=0.5))  # a gain under PGD alone is none
    (verdict,) = judged(ROBUST, path)
    assert "attack at ε = 2/255 (the baseline keeps 43.0%): -5.00 [" in verdict.reason
    assert verdict.word is Word.REFUTED


def only(networks, keep):
    """The networks under those of their conditions that are to be kept."""
    return [(label, card, [c for c in conditions if keep(c)], masked) for label, card, conditions, masked in networks]


@pytest.mark.parametrize("epsilon", [1 / 255, 4 / 255])
def test_where_the_baseline_keeps_too_little_or_too_much_an_attack_tells_nothing_apart(tmp_path, epsilon):
    networks = only(pairs(GAIN, GAIN), lambda c: c[0] != "attack" or c[2] == epsilon)
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert verdict.word is Word.NOT_IDENTIFIABLE
    assert "tells nothing apart" in verdict.reason


@pytest.mark.parametrize(
    ("kinds", "missing"), [(("clean", "attack"), "no corruption"), (("clean", "corruption"), "no attack")]
)
def test_what_was_not_run_is_not_taken_for_granted(tmp_path, kinds, missing):
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", pairs(GAIN, GAIN), kinds=kinds))
    assert verdict.word is Word.NOT_MEASURABLE
    assert missing in verdict.reason


def test_a_loss_refutes_whatever_else_was_not_run(tmp_path):
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", pairs(LOSS, LOSS), kinds=("clean", "corruption")))
    assert verdict.word is Word.REFUTED


def test_a_seed_that_lacks_a_corruption_is_left_out_of_the_mean_over_corruptions(tmp_path):
    first, *others = pairs(GAIN, GAIN)
    networks = [*only([first], lambda c: c[1] != "snow"), *others, network("sym", SYMMETRIC, 7)]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert "2 corruptions: +5.00 [" in verdict.reason
    assert verdict.reason.count("on 2 seeds") == 1  # not the seed that lacks a corruption
    assert verdict.reason.count("on 3 seeds") == 1


def test_attacks_of_another_norm_do_not_count(tmp_path):
    networks = [network(n, a, seed, norm="rms") for seed in range(3) for n, a in (("sym", SYMMETRIC), ("rpc4", RPC))]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert "no attack by gradients was run" in verdict.reason


def test_corruption_and_attack_may_lie_in_two_folders(tmp_path):
    networks = pairs(GAIN, GAIN)
    paths = [write_evaluation(tmp_path / kind, networks, kinds=("clean", kind)) for kind in ("corruption", "attack")]
    (verdict,) = judged(ROBUST, *paths)
    assert verdict.word is Word.SUPPORTED


def test_of_two_evaluations_the_one_with_more_pictures_counts(tmp_path):
    few = write_evaluation(tmp_path / "few", pairs(LOSS, LOSS), pictures=10)
    many = write_evaluation(tmp_path / "many", pairs(GAIN, GAIN), pictures=1000)
    for paths in ((few, many), (many, few)):
        (verdict,) = judged(ROBUST, *paths)
        assert verdict.word is Word.SUPPORTED


def test_of_two_evaluations_the_one_with_more_seeds_counts_before_the_one_with_more_pictures(tmp_path):
    many = write_evaluation(tmp_path / "many", pairs(LOSS[:2], LOSS[:2]), pictures=100_000)
    seeds = write_evaluation(tmp_path / "seeds", pairs(GAIN, GAIN), pictures=10_000)
    (verdict,) = judged(ROBUST, many, seeds)
    assert verdict.word is Word.SUPPORTED


def test_a_gain_under_attack_does_not_count_while_gradients_are_masked(tmp_path):
    checks = ("one step is not stronger than many",)
    (gain,) = judged(ROBUST, write_evaluation(tmp_path / "gain", pairs(GAIN, GAIN, masked=checks)))
    assert gain.word is Word.INCONCLUSIVE
    assert "3 of its networks fail a check for gradient masking" in gain.reason
    (loss,) = judged(ROBUST, write_evaluation(tmp_path / "loss", pairs(GAIN, LOSS, masked=checks)))
    assert loss.word is Word.REFUTED


def test_equal_gains_of_one_picture_are_not_certain(tmp_path):
    """Two of ten pictures, in both seeds: no spread to see, and still a matter of a picture."""
    networks = pairs((0.2, 0.2), (0.2, 0.2))
    (many,) = judged(ROBUST, write_evaluation(tmp_path / "many", networks))
    assert many.word is Word.SUPPORTED
    (few,) = judged(ROBUST, write_evaluation(tmp_path / "few", networks, pictures=10))
    assert few.word is Word.INCONCLUSIVE


def test_a_gain_under_attack_does_not_count_where_gradients_were_not_checked(tmp_path):
    (gain,) = judged(ROBUST, write_evaluation(tmp_path / "gain", pairs(GAIN, GAIN), checked=False))
    assert gain.word is Word.INCONCLUSIVE
    assert "3 of its networks were not checked for gradient masking" in gain.reason


def test_networks_evaluated_alike_on_the_same_pictures_are_compared_across_folders(tmp_path):
    networks = pairs(GAIN, GAIN)
    first = write_evaluation(tmp_path / "first", networks[:3], data="same")
    second = write_evaluation(tmp_path / "second", networks[3:], data="same")
    (verdict,) = judged(ROBUST, first, second)
    assert verdict.word is Word.SUPPORTED
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
    assert {held.kind for held in joined.networks[0].held} == {"clean", "corruption", "attack"}
    (verdict,) = judged(ROBUST, corrupted, attacked)
    assert verdict.word is Word.INCONCLUSIVE


def test_attacks_of_other_strength_or_origin_are_not_compared_across_folders(tmp_path):
    networks = pairs(GAIN, GAIN)
    baseline, ours = networks[::2], networks[1::2]
    for place, how in enumerate(({"steps": 1}, {"source": "another twin"})):
        one = write_evaluation(tmp_path / f"b{place}", baseline, data="same")
        other = write_evaluation(tmp_path / f"o{place}", ours, data="same", **how)
        (verdict,) = judged(ROBUST, one, other)
        assert verdict.word is Word.NOT_MEASURABLE


def test_two_results_for_one_network_and_condition_are_refused(tmp_path):
    """Whichever folder comes first."""
    first = write_evaluation(tmp_path / "first", pairs(GAIN, GAIN), data="same")
    second = write_evaluation(tmp_path / "second", pairs(LOSS, LOSS), data="same")
    for paths in ((first, second), (second, first)):
        with pytest.raises(RunFolderError, match=r"rpc4-0 keeps \d+\.\d% in one folder and \d+\.\d% in another"):
            open_evaluations(paths)


def test_one_network_by_two_names_is_one(tmp_path):
    networks = pairs(GAIN, GAIN)
    corrupted = write_evaluation(tmp_path / "c", networks, kinds=("clean", "corruption"), data="same")
    attacked = write_evaluation(tmp_path / "a", networks, kinds=("clean", "attack"), data="same")
    for name in ("run.json", "summary.json"):
        renamed = (
            (attacked / name)
            .read_text()
            .replace('"label": "', '"label": "/abs/')
            .replace('"model": "', '"model": "/abs/')
        )
        (attacked / name).write_text(renamed)
    (verdict,) = judged(ROBUST, corrupted, attacked)
    assert verdict.word is Word.SUPPORTED


def test_a_check_that_fails_in_another_evaluation_counts(tmp_path):
    """As AutoAttack's, of fewer networks and pictures."""
    main = write_evaluation(tmp_path / "main", pairs(GAIN, GAIN))
    failing = pairs(GAIN, GAIN, masked=("AutoAttack leaves no more than PGD, and hardly less",))[:2]
    (verdict,) = judged(ROBUST, main, write_evaluation(tmp_path / "strongest", failing, pictures=200))
    assert verdict.word is Word.INCONCLUSIVE
    assert "1 of its networks fail a check" in verdict.reason


def test_noise_alone_is_no_attack_to_compare_by(tmp_path):
    networks = [
        (label, card, [(k, "noise" if k == "attack" else n, *more) for k, n, *more in conditions], masked)
        for label, card, conditions, masked in only(pairs(GAIN, LOSS), lambda c: c[1] != "pgd")
    ]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert verdict.word is Word.NOT_MEASURABLE


@pytest.mark.parametrize("fact", ["setting", "epochs"])
def test_networks_that_were_trained_otherwise_are_not_compared(tmp_path, fact):
    networks = pairs(GAIN, GAIN)
    for place, (_, card, _, _) in enumerate(networks):
        card["facts"][fact] = place % 2
    assert judged(ROBUST, write_evaluation(tmp_path / "run", networks)) == []


@pytest.mark.parametrize(
    ("again", "first"),
    [(RPC, "rpc4-1"), ({**CONTROLS["tempered"], "attention_options": {"temperature": 1}}, "sym-1")],
)
def test_two_networks_of_one_attention_and_seed_are_refused(tmp_path, again, first):
    networks = [*pairs(GAIN, GAIN), network("again", again, 1)]
    with pytest.raises(UsageError, match=f"{first} and again-1 have the same attention and seed: judge one of them"):
        judged(ROBUST, write_evaluation(tmp_path / "run", networks))


def test_networks_of_other_size_or_epochs_are_not_compared(tmp_path):
    rpc = [network("rpc4", RPC, seed, corrupted=0.1, attacked=0.1, epochs=41) for seed in range(3)]
    rpc += [network("rpc4", {**RPC, "width": 195}, seed + 3) for seed in range(3)]
    networks = [*(network("sym", SYMMETRIC, seed) for seed in range(6)), *rpc]
    assert judged(ROBUST, write_evaluation(tmp_path / "run", networks)) == []


def test_an_interval_is_wider_for_two_subjects_than_for_one(tmp_path):
    networks = pairs((0.01, 0.02, 0.03), GAIN)
    (alone,) = judged(ROBUST, write_evaluation(tmp_path / "one", networks))
    more = [network("rpc6", {**RPC, "attention_options": {"iterations": 6}}, seed) for seed in range(3)]
    first, _ = judged(ROBUST, write_evaluation(tmp_path / "two", [*networks, *more]))
    assert alone.reason != first.reason


def interval(mean, deviation, differences):
    """Student's t on three seeds, in points, widened for so many differences, as a reason shows it."""
    reach = stats.t.ppf(1 - 0.05 / (2 * differences), 2) * deviation / 3**0.5
    return f"{mean:+.2f} [{mean - reach:+.2f}, {mean + reach:+.2f}]"


def test_intervals_are_widened_for_corruption_and_attack_and_for_every_control(tmp_path):
    spread = (0.01, 0.02, 0.03)
    (robust,) = judged(ROBUST, write_evaluation(tmp_path / "robust", pairs(spread, spread)))
    assert robust.reason.count(interval(2.0, 1.0, 2)) == 2
    (because,) = judged(
        BECAUSE, write_evaluation(tmp_path / "because", with_controls(0.05, one=0, random=0, tempered=0))
    )
    assert because.reason.count(interval(5.01, 0.01, 8)) == 8


def with_controls(ahead, **controls):
    """RPC-Attention and its controls, ahead of the baseline by so much under both."""
    networks = []
    for seed in range(3):
        own = 0.0001 * seed
        networks.append(network("sym", SYMMETRIC, seed))
        networks.append(network("rpc4", RPC, seed, corrupted=ahead + own, attacked=ahead + own))
        for name, gain in controls.items():
            networks.append(network(name, CONTROLS[name], seed, corrupted=gain, attacked=gain))
    return networks


@pytest.mark.parametrize(
    ("controls", "word"),
    [
        ({"one": 0.0, "random": 0.0, "tempered": 0.0}, Word.SUPPORTED),
        ({"one": 0.05, "random": 0.0, "tempered": 0.0}, Word.REFUTED),
        ({"one": 0.0, "random": 0.06, "tempered": 0.0}, Word.REFUTED),
        ({"one": 0.0, "random": 0.0, "tempered": 0.05}, Word.REFUTED),
        ({"one": 0.05, "random": 0.05, "tempered": 0.05}, Word.INDISTINGUISHABLE),
    ],
)
def test_pursuit_is_the_reason_only_if_every_control_falls_behind(tmp_path, controls, word):
    (verdict,) = judged(BECAUSE, write_evaluation(tmp_path / "run", with_controls(0.05, **controls)))
    assert (verdict.model, verdict.word) == ("rpc4", word)
    assert all(f"Points over {name}" in verdict.reason for name in controls)
    assert verdict.reason.count("the baseline keeps 43.0%") == 4  # which is the symmetric network, not the control


def test_without_a_gain_there_is_nothing_to_explain(tmp_path):
    networks = with_controls(0.0, one=-0.05, random=-0.05, tempered=-0.05)
    (verdict,) = judged(BECAUSE, write_evaluation(tmp_path / "run", networks))
    assert verdict.word is Word.NOT_IDENTIFIABLE
    assert verdict.reason.startswith("There is no gain to explain. Points over sym: ")


def test_only_what_is_gained_must_be_explained(tmp_path):
    """Ahead under corruption alone, and the controls under attack alone."""
    networks = []
    for seed in range(3):
        own = 0.0001 * seed
        networks.append(network("sym", SYMMETRIC, seed))
        networks.append(network("rpc4", RPC, seed, corrupted=0.05 + own))
        networks += [network(name, control, seed, attacked=0.05) for name, control in CONTROLS.items()]
    (verdict,) = judged(BECAUSE, write_evaluation(tmp_path / "run", networks))
    assert verdict.word is Word.SUPPORTED


@pytest.mark.parametrize(("sparse", "word"), [(0.2, Word.REFUTED), (0.0005, Word.SUPPORTED), (None, Word.SUPPORTED)])
def test_places_of_a_sparse_part_decide_nothing_where_there_is_none(tmp_path, sparse, word):
    networks = with_controls(0.05, one=0.0, random=0.05, tempered=0.0)
    for _, card, _, _ in networks:
        card["facts"]["attention"] = {"blocks.0.attn": {"entropy": 3.0} if sparse is None else {"nonzero": sparse}}
    (verdict,) = judged(BECAUSE, write_evaluation(tmp_path / "run", networks))
    assert verdict.word is word
    assert ("decide nothing" in verdict.reason) == (word is Word.SUPPORTED)


@pytest.mark.parametrize("missing", CONTROLS)
def test_without_one_of_its_controls_the_reason_is_not_judged(tmp_path, missing):
    present = {name: 0.0 for name in CONTROLS if name != missing}
    assert judged(BECAUSE, write_evaluation(tmp_path / "run", with_controls(0.05, **present))) == []


@pytest.mark.parametrize("other", [{"attention_layers": [1]}, {"attention": "softmax"}])
def test_the_tempered_control_is_symmetric_attention_in_the_layers_of_the_pursuit(tmp_path, other):
    networks = with_controls(0.05, one=0.0, random=0.0)
    networks += [network("tempered", {**CONTROLS["tempered"], **other}, seed) for seed in range(3)]
    assert judged(BECAUSE, write_evaluation(tmp_path / "run", networks)) == []


@pytest.mark.parametrize(
    ("attention", "subjects"),
    [
        (RPC, ["it"]),
        ({**RPC, "attention_layers": None}, ["it"]),
        (CONTROLS["one"], []),
        (CONTROLS["random"], []),
        ({**RPC, "other_attention": "softmax"}, []),
    ],
)
def test_subjects_are_networks_that_pursue_in_symmetric_attention(tmp_path, attention, subjects):
    networks = [network(n, a, seed) for seed in range(3) for n, a in (("sym", SYMMETRIC), ("it", attention))]
    verdicts = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert [verdict.model for verdict in verdicts] == subjects


def test_every_seed_may_have_its_own_temperature(tmp_path):
    networks = with_controls(0.05, one=0.0, random=0.0)
    for seed in range(3):
        tempered = {**CONTROLS["tempered"], "attention_options": {"temperature": 0.3 + seed}}
        networks.append(network("tempered", tempered, seed))
    (verdict,) = judged(BECAUSE, write_evaluation(tmp_path / "run", networks))
    assert verdict.word is Word.SUPPORTED


def test_defaults_and_presets_are_the_same_attention_as_the_options_they_stand_for():
    spelt = {"iterations": 4, "lam": 4.0, "preset": "paper", "threshold": "lam*mu", "mu_width": "model"}
    written = {"depth": 6, "attention": "rpc", "attention_layers": [-6], "other_attention": "symmetric"}
    plain, long = (Choice.of(written | {"attention_options": options}) for options in ({}, spelt))
    assert plain == long
    assert plain == Choice.of({**written, "attention_layers": [0]})
    assert plain != Choice.of({**written, "attention_options": {"form": "learned"}})
    everywhere = {"depth": 2, "attention": "symmetric", "attention_options": {}}
    both = {**everywhere, "attention_layers": [1], "other_attention": "symmetric"}
    assert Choice.of(everywhere | {"attention_layers": None}) == Choice.of(both)
    assert not Choice.of({**both, "attention_options": {"temperature": 2.0}}).is_plain_symmetric


def test_an_audit_refuses_claims_about_robustness():
    assert not set(CLAIMS) & set(ROBUSTNESS_CLAIMS)
    with pytest.raises(UsageError, match="rpc-robust is about robustness, not about heads: run attnaudit judge"):
        claims_named(["rpc-robust"])


def test_an_unfinished_or_damaged_evaluation_is_named(tmp_path):
    path = write_evaluation(tmp_path / "run", pairs(GAIN, GAIN))
    (path / "summary.json").write_text("{}")
    with pytest.raises(RunFolderError, match=r"summary\.json is not readable as the summary of an evaluation"):
        open_evaluation(path)
    (path / "summary.json").unlink()
    with pytest.raises(RunFolderError, match="holds an evaluation that is not finished"):
        open_evaluation(path)
    assert holds_evaluation(path)
    with pytest.raises(RunFolderError, match="holds no evaluation"):
        open_evaluation(tmp_path / "nowhere")


@pytest.mark.parametrize("claim", ROBUSTNESS_CLAIMS.values(), ids=lambda c: c.name)
def test_every_claim_says_where_it_comes_from_how_it_is_decided_and_what_it_needs(claim):
    assert claim.statement
    assert claim.citation
    assert claim.rule
    assert claim.needs
    assert claim.judged_by == "attnaudit judge RUN…"
