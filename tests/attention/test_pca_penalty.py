"""The pull of keys towards principal components: its minimum, its invariances, and that training follows it."""

import pytest
import torch

from attnaudit.attention import PCAPenalty, swap
from attnaudit.attention.functional import unexplained_variance
from attnaudit.errors import ModelError, UsageError
from attnaudit.records.architecture import Architecture
from attnaudit.sources.vision_transformer import build_vision_transformer


def tokens(count=400, width=6):
    torch.manual_seed(0)
    return torch.randn(count, width, dtype=torch.float64) * torch.arange(width, 0, -1) + 3


def leading(found, rank):
    _, vectors = torch.linalg.eigh(torch.cov(found.T))
    return vectors.flip(1)[:, :rank]


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_the_minimum_is_the_share_that_pca_leaves_and_its_place_are_the_leading_eigenvectors(rank):
    found = tokens()
    eigenvalues = torch.linalg.eigvalsh(torch.cov(found.T)).flip(0)
    best = leading(found, rank).requires_grad_()
    value = unexplained_variance(found, best)
    torch.testing.assert_close(value, eigenvalues[rank:].sum() / eigenvalues.sum())
    value.backward()
    assert best.grad.abs().max() < 1e-12
    others = torch.randn(50, 6, rank, dtype=torch.float64)
    assert (unexplained_variance(found, others) >= value).all()


def test_one_direction_has_the_rayleigh_quotient():
    found, direction = tokens(), torch.randn(6, dtype=torch.float64)
    covariance = torch.cov(found.T, correction=0)
    expected = 1 - direction @ covariance @ direction / direction.square().sum() / covariance.trace()
    torch.testing.assert_close(unexplained_variance(found, direction[:, None]), expected)


def test_neither_size_nor_basis_nor_mean_matters():
    found, directions = tokens(), torch.randn(6, 3, dtype=torch.float64)
    mixed = directions @ torch.randn(3, 3, dtype=torch.float64)
    expected = unexplained_variance(found, directions)
    torch.testing.assert_close(unexplained_variance(7 * found - 100, mixed), expected)


def test_heads_are_measured_one_by_one():
    found, heads = tokens(), torch.randn(4, 6, 2, dtype=torch.float64)
    each = torch.stack([unexplained_variance(found, head) for head in heads])
    torch.testing.assert_close(unexplained_variance(found, heads), each)


def network():
    return build_vision_transformer(Architecture(image_size=8, patch_size=2, width=12, depth=2, heads=2), 0)


@pytest.mark.parametrize("attention", ["softmax", "symmetric", "rpc", "scaled", "primal"])
def test_descent_on_the_penalty_alone_lowers_it_for_every_attention(attention):
    model = network()
    if attention != "softmax":
        swap(model, attention, **({"rank": 4} if attention == "primal" else {}))
    penalty, images = PCAPenalty(model), torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    for _ in range(12):
        optimiser.zero_grad()
        model(images)
        loss = penalty.loss()
        loss.backward()
        optimiser.step()
        seen.append(float(loss.detach()))
    assert 0 < seen[-1] < seen[0] < 1


def test_it_pulls_the_projections_of_keys_and_nothing_else():
    model = network()
    penalty = PCAPenalty(model)
    model(torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    penalty.loss().backward()
    moved = {name for name, own in model.named_parameters() if own.grad is not None and own.grad.abs().max() > 0}
    assert moved == {f"blocks.{block}.attn.qkv.weight" for block in range(2)}
    queries, keys, values = model.blocks[0].attn.qkv.weight.grad.chunk(3)
    assert keys.abs().max() > 0
    assert not queries.any()
    assert not values.any()


def test_without_a_forward_pass_or_without_attention_it_says_so():
    with pytest.raises(UsageError, match="call the model first"):
        PCAPenalty(network()).loss()
    with pytest.raises(ModelError, match="no attention layer"):
        PCAPenalty(torch.nn.Linear(2, 2))


def test_an_evaluation_leaves_nothing_behind():
    model = network()
    penalty = PCAPenalty(model)
    with torch.no_grad():
        model(torch.zeros(1, 3, 8, 8))
    with pytest.raises(UsageError, match="call the model first"):
        penalty.loss()
