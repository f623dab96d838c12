"""RPC-Attention in fine-tuned encoders: words from made-up evaluations whose answer is known."""

import pytest

from attnaudit.claims.registry import CLAIMS
from attnaudit.records.architecture import EncoderArchitecture
from attnaudit.records.json_file import plain
from attnaudit.records.verdict import VerdictWord
from tests.claims.evaluations import BECAUSE, GAIN, LOSS, NONE, ROBUST, WIDE, judged, write_evaluation

CLAIM = CLAIMS["rpc-fine-tuned"]
SOFTMAX, SYMMETRIC = {}, {"attention": "symmetric"}
RPC = {"attention": "rpc", "attention_options": {"iterations": 2}}
ASYMMETRIC = {"attention": "rpc", "attention_options": {"iterations": 2, "asymmetric": True}}
TWO = {**ASYMMETRIC, "attention_layers": (0, 1)}


def network(recipe, attention, seed, *, clean=0.0, noisy=0.0):
    """An encoder that is ahead of 90 % clean and 80 % under noise by so much."""
    own = 0.01 * seed
    conditions = [("clean", "clean", 0.0, None, 0.85 + own + clean)]
    for name in ("word-swap", "typos"):
        conditions += [("noise", name, rate, None, 0.75 + own + noisy) for rate in (0.1, 0.3)]
    card = {
        "architecture": plain(EncoderArchitecture(depth=6, **attention)),
        "facts": {"recipe": recipe, "seed": seed, "epochs": 4},
    }
    return f"{recipe}-{seed}", card, conditions, ()


def networks(ours, theirs, clean, noisy):
    found = []
    for seed, (one, other) in enumerate(zip(clean, noisy, strict=True)):
        found += [network("base", theirs, seed), network("ours", ours, seed, clean=one, noisy=other)]
    return found


def verdicts(path, claim, found):
    return judged(claim, write_evaluation(path, found, images=872, kinds=("clean", "noise"), steps=None))


@pytest.mark.parametrize(("ours", "theirs"), [(ASYMMETRIC, SOFTMAX), (TWO, SOFTMAX), (RPC, SYMMETRIC)])
@pytest.mark.parametrize(
    ("clean", "noisy", "words"),
    [
        (GAIN, GAIN, "supported"),
        (LOSS, GAIN, "refuted (a loss)"),
        (GAIN, NONE, "refuted (no gain)"),
        (GAIN, WIDE, "undecided (too wide)"),
        (GAIN[:1], GAIN[:1], "undecided (too few inputs)"),
    ],
)
def test_a_gain_must_be_there_clean_and_under_noise(tmp_path, ours, theirs, clean, noisy, words):
    (verdict,) = verdicts(tmp_path / "run", CLAIM, networks(ours, theirs, clean, noisy))
    assert (verdict.model, verdict.words) == ("ours", words)
    assert "points over base: clean: " in verdict.reason
    assert "; 2 noises: " in verdict.reason


@pytest.mark.parametrize(("ours", "theirs"), [(ASYMMETRIC, SYMMETRIC), (RPC, SOFTMAX), (SYMMETRIC, SOFTMAX)])
def test_each_form_is_held_against_what_it_replaces_alone(tmp_path, ours, theirs):
    assert verdicts(tmp_path / "run", CLAIM, networks(ours, theirs, GAIN, GAIN)) == ()


@pytest.mark.parametrize(("ours", "theirs"), [(ASYMMETRIC, SOFTMAX), (RPC, SYMMETRIC)])
@pytest.mark.parametrize("options", [{"temperature": 8.0}, {"qk_norm": True}])
def test_attention_with_a_temperature_or_options_is_no_baseline(tmp_path, ours, theirs, options):
    changed = {**theirs, "attention_options": options}
    assert verdicts(tmp_path / "run", CLAIM, networks(ours, changed, GAIN, GAIN)) == ()


def test_one_iteration_pursues_nothing(tmp_path):
    once = {**ASYMMETRIC, "attention_options": {"iterations": 1, "asymmetric": True}}
    assert verdicts(tmp_path / "run", CLAIM, networks(once, SOFTMAX, GAIN, GAIN)) == ()


@pytest.mark.parametrize("claim", [ROBUST, BECAUSE])
def test_claims_about_images_say_nothing_of_sentences(tmp_path, claim):
    assert verdicts(tmp_path / "run", claim, networks(RPC, SYMMETRIC, GAIN, GAIN)) == ()


def test_without_noise_nothing_is_decided(tmp_path):
    path = write_evaluation(tmp_path / "run", networks(RPC, SYMMETRIC, GAIN, GAIN), images=872, kinds=("clean",))
    (verdict,) = judged(CLAIM, path)
    assert verdict.word is VerdictWord.UNDECIDED
    assert "no noise was run on both" in verdict.reason
