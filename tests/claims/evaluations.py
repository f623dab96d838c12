"""Made-up evaluations of networks whose answer is known."""

from scipy import stats

from attnaudit.claims.jury import judge
from attnaudit.claims.registry import CLAIMS
from attnaudit.protocol import Protocol
from attnaudit.records.architecture import Architecture
from attnaudit.records.evaluated_networks import open_evaluations
from attnaudit.records.evaluation import (
    Accuracy,
    Condition,
    ConditionKind,
    EvaluationConventions,
    EvaluationIdentity,
    EvaluationSummary,
    MaskingCheck,
)
from attnaudit.records.json_file import plain, write
from attnaudit.records.run_folder import FORMAT

ROBUST, BECAUSE = CLAIMS["rpc-robust"], CLAIMS["rpc-because-of-pcp"]
FIRST = {"attention_layers": [0], "other_attention": "symmetric"}
SYMMETRIC = {"attention": "symmetric"}
RPC = {"attention": "rpc", "attention_options": {"iterations": 4}, **FIRST}
CONTROLS = {
    "one": {**RPC, "attention_options": {"iterations": 1}},
    "random": {**RPC, "attention_options": {"iterations": 4, "sparse": "random"}},
    "tempered": {"attention": "symmetric", "attention_options": {"temperature": 0.3}, **FIRST},
}
EPSILONS = (1 / 255, 2 / 255, 4 / 255)
GAIN, LOSS, NONE, WIDE = (0.05, 0.051, 0.049), (-0.05, -0.051, -0.049), (0.0, 0.0001, -0.0001), (0.1, -0.1, 0.02)

#: About 0; the interval ends at 3.58 standard deviations (Student's t, two differences, three seeds): at 0.97
#: and at 1.04 points.
BELOW_A_POINT, BEYOND_A_POINT = (0.0027, 0.0, -0.0027), (0.0029, 0.0, -0.0029)


def network(
    recipe, attention, seed, *, corrupted=0.0, attacked=0.0, pgd=0.0, masked=(), epochs=40, norm="max", sparse=0.2,
    entropy=None
):  # fmt: skip
    """A network ahead of the baseline, of 80 % clean, by so much; PGD, which is weaker, by `pgd` more.

    Unless it is given, its entropy is that of its kind: RPC-Attention is sharper than symmetric attention.
    """
    own = 0.01 * seed
    conditions = [("clean", "clean", 0.0, None, 0.8 + own)]
    conditions += [
        ("corruption", name, float(s), None, 0.6 + own + corrupted) for name in ("fog", "snow") for s in (1, 5)
    ]
    for epsilon, left in zip(EPSILONS, (0.6, 0.42, 0.02), strict=True):
        conditions.append(("attack", "apgd", epsilon, norm, left + own + attacked))
        conditions.append(("attack", "pgd", epsilon, norm, left + own + attacked + 0.05 + pgd))
    architecture = plain(Architecture()) | {"depth": 6} | attention
    sharp = attention["attention"] == "rpc" or attention.get("attention_options", {}).get("temperature", 1) != 1
    layers = {f"blocks.{layer}.attn": {"entropy": entropy or (3.3 if sharp else 3.8)} for layer in range(6)}
    layers["blocks.0.attn"] |= {} if sparse is None else {"nonzero": sparse}
    facts = {"recipe": recipe, "seed": seed, "epochs": epochs, "attention": layers}
    card = {"architecture": architecture, "facts": facts}
    return f"{recipe}-{seed}", card, conditions, masked


def write_evaluation(
    path, networks, images=100_000, kinds=("clean", "corruption", "attack"), *, data=None, checked=True, **how
):
    """In a folder; of images of its own unless `data` names some; `how` are steps, source and protocol."""
    steps, source, protocol = how.get("steps", 20), how.get("source", "images"), how.get("protocol", Protocol.EXACT)
    path.mkdir()
    models = [{"label": name, "fingerprint": name, "weights": name, "card": card} for name, card, _, _ in networks]
    settings = EvaluationConventions(seed=0, protocol=protocol, precision="fp32", masked=False, batch=64)
    run = {
        "format": FORMAT,
        "identity": plain(EvaluationIdentity(settings, data or path.name)),
        "attnaudit": "0",
        "versions": {},
        "models": [*models, {"label": "timm:x", "fingerprint": "x", "weights": "x", "card": None}],
        "twin": None,
        "data": "test",
        "images": images,
        "conditions": [],
        "parts": [],
    }
    write(path / "run.json", run)
    accuracies = [
        _accuracy(label, Condition(ConditionKind(kind), *how, steps=steps), source, images, accuracy)
        for label, _, conditions, _ in networks
        for kind, *how, accuracy in conditions
        if kind in kinds
    ]
    checks = [MaskingCheck(label, name, "", False) for label, _, _, masked in networks for name in masked]
    checks += [MaskingCheck(label, "twin", "", True if checked else None) for label, _, _, _ in networks]
    write(path / "summary.json", EvaluationSummary(tuple(accuracies), (), tuple(checks)))
    return path


def _accuracy(label, condition, source, images, accuracy):
    return Accuracy(label, condition, source, images, round(images * accuracy), accuracy, (0.0, 1.0), None, 0.0)


def pairs(corrupted, attacked, **more):
    """Symmetric networks, and RPC-Attention that gains so much over them, seed by seed."""
    found = []
    for seed, (under_corruption, under_attack) in enumerate(zip(corrupted, attacked, strict=True)):
        found.append(network("sym", SYMMETRIC, seed))
        found.append(network("rpc4", RPC, seed, corrupted=under_corruption, attacked=under_attack, **more))
    return found


def judged(claim, *paths):
    return judge([claim], open_evaluations(paths)).verdicts


def only(networks, keep):
    """The networks under those of their conditions that are to be kept."""
    return [(label, card, [c for c in conditions if keep(c)], masked) for label, card, conditions, masked in networks]


def interval(mean, deviation, differences):
    """Student's t on three seeds, in points, widened for so many differences, as a reason shows it."""
    reach = stats.t.ppf(1 - 0.05 / (2 * differences), 2) * deviation / 3**0.5
    return f"{mean:+.2f} [{mean - reach:+.2f}, {mean + reach:+.2f}]"


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
