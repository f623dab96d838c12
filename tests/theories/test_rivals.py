"""What each fitted theory predicts, of heads for which it is true and of others."""

from dataclasses import replace

import pytest
import torch

from attnaudit.capture.key_heads import by_key_head
from attnaudit.measures.explained_variance import explained_variance, output_explained_variance, rank_needed
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.low_pass import low_pass_share
from attnaudit.measures.measure_input import MeasureInput, PredictedValues
from attnaudit.measures.step_cosine import step_cosine
from attnaudit.theories import THEORIES
from attnaudit.theories.fitting import FittedTheory
from attnaudit.theories.hopfield import retrieved
from attnaudit.theories.low_pass import AttentionGraph
from tests.theories.layers import DIM, HEADS, TOKENS, fitted, layer

RIVALS = [theory for theory in THEORIES.values() if isinstance(theory, FittedTheory)]
MEASURES = {
    "explained_variance": explained_variance,
    "output_explained_variance": output_explained_variance,
    "step_cosine": step_cosine,
}


def measured(theory, heads, function=None):
    """The deciding measure of the heads that the theory was not fitted to."""
    fit, rows = fitted(theory, heads)
    numbers = []
    for row in rows:
        keys = KeyKernel(row)
        at = MeasureInput(row, keys, PredictedValues(keys, theory, fit.predict(row)))
        numbers.append((function or MEASURES[theory.measures[0]])(at))
    return torch.cat(numbers)


def weights(width=DIM, seed=5):
    return torch.randn(HEADS, width, DIM, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def of_keys(heads):
    return heads.key @ weights().repeat(len(heads) // HEADS, 1, 1) + 2


@pytest.mark.parametrize("theory", RIVALS, ids=lambda theory: theory.name)
@pytest.mark.parametrize("causal", [False, True])
def test_every_theory_recognises_its_planted_heads(theory, causal):
    heads = layer(causal=causal)
    planted = theory.planted(heads, 0)
    if planted is None:  # what it predicts after a fit to other inputs
        fit, rows = fitted(theory, heads)
        changed = [replace(row, output=fit.predict(row).outputs) for row in rows]
        for row, other in zip(rows, changed, strict=True):
            keys = KeyKernel(other)
            at = MeasureInput(other, keys, PredictedValues(keys, theory, fit.predict(row)))
            assert (MEASURES[theory.measures[0]](at) > 0.999).all()
    else:
        found, other = measured(theory, planted), measured(theory, heads)
        assert (found > 0.999).all() or (not theory.baseline and found.mean() > 0.1 + other.mean())


def test_values_that_are_a_linear_map_of_keys_are_explained_on_other_inputs():
    assert (measured(THEORIES["keys-linear"], layer(of_keys)) > 1 - 1e-9).all()
    assert (measured(THEORIES["keys-linear"], layer()) < 0.99).all()


def test_noise_is_explained_by_nothing():
    noise = layer(lambda heads: torch.randn(heads.value.shape, generator=torch.Generator().manual_seed(1)).double())
    for theory in ("keys-linear", "inputs-lowrank", "kernel-regression"):
        assert (measured(THEORIES[theory], noise) < 0.1).all()


def test_values_are_a_linear_map_of_the_inputs_of_their_layer():
    assert (measured(THEORIES["inputs-lowrank"], layer()) > 1 - 1e-9).all()


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_the_rank_that_values_need_is_that_of_their_projection(rank):
    def low(heads):
        factors = weights(10)[:, :, :rank] @ weights(seed=6)[:, :rank]
        return (heads.source[:, None] @ factors).flatten(0, 1)

    found = measured(THEORIES["inputs-lowrank"], layer(low), rank_needed)
    assert (found <= rank / DIM).all()
    assert rank > 1 or (found == 0.25).all()


def test_theories_of_unknown_inputs_say_so():
    for name in ("inputs-lowrank", "mean-shift"):
        fit, rows = fitted(THEORIES[name], layer(source=False))
        assert fit.predict(rows[0]).problems == ("the inputs of this layer are not known",) * HEADS


def test_a_fit_to_too_few_tokens_says_so():
    theory, heads = THEORIES["inputs-lowrank"], layer()
    fitting = theory.fitting()
    few = heads.part(0, HEADS)
    short = {name: getattr(few, name)[:, :6] for name in ("query", "key", "value", "output", "source")}
    fitting.add(replace(few, **short))
    assert "no more tokens" in fitting.finish().predict(few).problems[0]


def test_kernel_regression_never_looks_at_the_token_itself():
    theory, heads = THEORIES["kernel-regression"], layer()
    changed = heads.value.clone()
    changed[:, 7] += 100
    before, after = (theory.fitting().predict(own).values for own in (heads, replace(heads, value=changed)))
    torch.testing.assert_close(before[:, 7], after[:, 7])
    assert not torch.allclose(before[:, 8], after[:, 8])


def test_kernel_regression_of_causal_heads_looks_at_earlier_tokens_only():
    theory, heads = THEORIES["kernel-regression"], layer(causal=True)
    changed = heads.value.clone()
    changed[:, 7] += 100
    before, after = (theory.fitting().predict(own) for own in (heads, replace(heads, value=changed)))
    torch.testing.assert_close(before.values[:, :7], after.values[:, :7])
    assert not torch.allclose(before.values[:, 8:], after.values[:, 8:])
    torch.testing.assert_close(before.values[:, 0], heads.value[:, 0])  # it sees no other, and has no say
    torch.testing.assert_close(before.baseline[:, 0], heads.value[:, 0])


def test_a_hopfield_query_comes_to_a_point_that_does_not_move():
    heads = layer()
    found = retrieved(heads)
    again = replace(heads, query=found.double(), value=heads.key).replayed()
    moved = (again - found).norm(dim=-1)  # a few queries are slow to arrive
    assert moved.quantile(0.99) < 0.02 * heads.key.norm(dim=-1).mean()


def test_where_a_hopfield_query_comes_to_does_not_depend_on_the_other_heads_of_a_batch():
    heads = layer()
    quick, slow = (replace(heads, scale=share * heads.scale) for share in (0.1, 0.5))
    both = replace(
        slow,
        **{
            name: torch.cat([getattr(own, name) for own in (quick, slow)])
            for name in ("query", "key", "value", "output", "scale", "source")
        },
        index=(*quick.index, *slow.index),
    )
    assert torch.equal(retrieved(both), torch.cat([retrieved(quick), retrieved(slow)]))


def test_a_hopfield_query_near_a_stored_pattern_comes_to_it():
    planted = THEORIES["hopfield"].planted(layer(), 0)
    distance = (retrieved(planted) - planted.key).norm(dim=-1) / planted.key.norm(dim=-1)
    assert distance.median() < 0.05


@pytest.mark.parametrize("scale", [0.01, 4.0])
def test_planted_patterns_are_well_separated_at_any_temperature(scale):
    heads = layer()
    planted = THEORIES["hopfield"].planted(replace(heads, scale=torch.full_like(heads.scale, scale)), 0)
    sharpness = scale * planted.key.square().sum(dim=-1)
    torch.testing.assert_close(sharpness, torch.full_like(sharpness, 30))
    distance = (retrieved(planted) - planted.key).norm(dim=-1) / planted.key.norm(dim=-1)
    assert distance.median() < 0.05


def test_mean_shift_steps_are_the_gradient_of_the_log_density():
    heads = layer()
    theory = THEORIES["mean-shift"]
    fit, rows = fitted(theory, heads)
    row = rows[0]
    inputs = row.source[0].clone().requires_grad_()
    for head in range(HEADS):
        to_query = torch.linalg.lstsq(row.source[0], row.query[head]).solution
        to_value = torch.linalg.lstsq(row.source[0], row.value[head]).solution
        logits = inputs @ to_query @ row.key[head].T * row.scale[head]
        (gradient,) = torch.autograd.grad(torch.logsumexp(logits, dim=-1).sum(), inputs)
        torch.testing.assert_close(fit.predict(row).outputs[head], gradient @ to_value, rtol=1e-6, atol=1e-9)


def test_mean_shift_of_queries_that_are_not_made_from_the_inputs_is_missing():
    heads = layer()
    turned = replace(heads, query=heads.query.flip(1))
    fit, rows = fitted(THEORIES["mean-shift"], turned)
    assert "not a linear map" in fit.predict(rows[0]).problems[0]
    cross = replace(heads, query=heads.query[:, :5], output=heads.output[:, :5])
    fit, rows = fitted(THEORIES["mean-shift"], cross)
    assert "not those of its tokens" in fit.predict(rows[0]).problems[0]


def test_an_ideal_low_pass_keeps_the_energy_it_is_given_in_the_lowest_frequencies():
    heads = layer()
    graph = AttentionGraph.of(heads.attention())
    energy = 0.3 * heads.value.square().sum(dim=(1, 2))
    low = graph.ideal(heads.value, energy)
    torch.testing.assert_close(low.square().sum(dim=(1, 2)), energy)
    assert (graph.mean_frequency(low) < graph.mean_frequency(heads.value)).all()
    everything = graph.ideal(heads.value, 2 * heads.value.square().sum(dim=(1, 2)))
    torch.testing.assert_close(everything, heads.value)


def test_outputs_with_the_frequencies_of_the_values_are_no_low_pass():
    heads = layer()
    kept = replace(heads, output=0.5 * heads.value)
    found = measured(THEORIES["low-pass"], kept, low_pass_share)
    torch.testing.assert_close(found, torch.zeros_like(found), atol=1e-9, rtol=0)


@pytest.mark.parametrize("theory", RIVALS, ids=lambda theory: theory.name)
def test_heads_that_share_their_keys_are_measured_as_one(theory):
    heads = layer()
    shared = torch.arange(len(heads)) // HEADS * HEADS
    same = {name: getattr(heads, name)[shared] for name in ("key", "value")}
    grouped = replace(heads, **same, key_heads=(0,) * len(heads))
    grouped = by_key_head(replace(grouped, output=grouped.attended(grouped.value)))
    assert grouped.query.shape[1] == HEADS * TOKENS
    fitting = theory.fitting()
    for row in range(1, len(grouped)):
        fitting.add(grouped.part(row, row + 1))
    first = grouped.part(0, 1)
    keys = KeyKernel(first)
    at = MeasureInput(first, keys, PredictedValues(keys, theory, fitting.finish().predict(first)))
    assert MEASURES[theory.measures[0]](at).isfinite().all()


def test_kernel_regression_smooths_at_the_temperature_of_its_head():
    heads = replace(layer(), scale=torch.full((len(layer()),), 1.5, dtype=torch.float64))
    kernel = torch.exp(1.5 * heads.key @ heads.key.mT) * (1 - torch.eye(TOKENS, dtype=torch.float64))
    found = THEORIES["kernel-regression"].fitting().predict(heads).values
    torch.testing.assert_close(found, kernel @ heads.value / kernel.sum(dim=-1, keepdim=True))


def test_kernel_regression_is_compared_with_the_mean_of_the_tokens_that_are_seen():
    heads = layer(causal=True)
    baseline = THEORIES["kernel-regression"].fitting().predict(heads).baseline
    for token in range(1, TOKENS):
        torch.testing.assert_close(baseline[:, token], heads.value[:, :token].mean(dim=1))


def test_a_causal_hopfield_query_comes_to_a_point_among_the_keys_that_it_sees():
    heads = layer(causal=True)
    found, (first, second) = retrieved(heads).double(), heads.key[:, :2].unbind(dim=1)
    torch.testing.assert_close(found[:, 0], first, rtol=0, atol=1e-5)
    between = torch.cat([(found[:, 1] - first).norm(dim=1), (found[:, 1] - second).norm(dim=1)]).reshape(2, -1)
    torch.testing.assert_close(between.sum(dim=0), (first - second).norm(dim=1), rtol=0, atol=1e-5)


def test_retrieved_patterns_are_compared_with_the_mean_of_the_outputs_of_the_other_half():
    heads = layer()
    heads = replace(heads, output=heads.output + 3)
    fit, rows = fitted(THEORIES["hopfield"], heads)
    others = [heads.output[start : start + HEADS] for start in range(0, len(heads), 2 * HEADS)]
    expected = torch.stack(others).mean(dim=(0, 2))
    torch.testing.assert_close(fit.predict(rows[0]).baseline[:, 0], expected)


def test_frequencies_are_those_of_a_symmetric_graph_and_of_what_differs_between_tokens():
    heads = layer()
    graph = AttentionGraph.of(heads.attention())
    torch.testing.assert_close(graph.laplacian, graph.laplacian.mT)
    torch.testing.assert_close(graph.laplacian.sum(dim=-1), torch.zeros(len(heads), TOKENS, dtype=torch.float64))
    torch.testing.assert_close(graph.mean_frequency(heads.value + 5), graph.mean_frequency(heads.value))


def test_what_is_added_to_all_outputs_is_added_to_the_ideal_low_pass():
    heads = layer()
    fit = THEORIES["low-pass"].fitting()
    before, after = (fit.predict(replace(heads, output=heads.output + own)).outputs for own in (0, 5))
    torch.testing.assert_close(after, before + 5)


@pytest.mark.parametrize(("noise", "made"), [(0.05, True), (0.3, False)])
@pytest.mark.parametrize("shift", [0, 100])
def test_queries_are_made_from_the_inputs_if_these_explain_nearly_all_of_their_variance(noise, made, shift):
    heads = layer()
    drawn = torch.randn(heads.query.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    fit, rows = fitted(THEORIES["mean-shift"], replace(heads, query=heads.query + noise * drawn + shift))
    assert [problem is None for problem in fit.predict(rows[0]).problems] == [made] * HEADS


def test_what_is_added_to_all_outputs_is_no_direction_of_a_step():
    heads = layer()
    theory = THEORIES["mean-shift"]
    fit, rows = fitted(theory, heads)
    row, keys = rows[0], KeyKernel(rows[0])
    predicted = PredictedValues(keys, theory, fit.predict(row))
    before, after = (
        step_cosine(MeasureInput(own, keys, predicted)) for own in (row, replace(row, output=row.output + 5))
    )
    torch.testing.assert_close(after, before)
