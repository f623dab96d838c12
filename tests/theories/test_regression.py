import torch

from attnaudit.theories.regression import RegressionSums


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def solved(features, targets):
    sums = RegressionSums()
    for row in range(len(features)):
        sums.add(features[row : row + 1], targets[row : row + 1])
    return sums.solve()


def test_sums_give_the_least_squares_of_all_rows_together():
    features, targets = draw(5, 2, 20, 3), draw(5, 2, 20, 4, seed=1)
    found = solved(features, targets)
    for head in range(2):
        x, y = features[:, head].flatten(0, 1), targets[:, head].flatten(0, 1)
        wanted = torch.linalg.lstsq(torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], dim=1), y).solution
        torch.testing.assert_close(found.weights[head], wanted[:-1])
        torch.testing.assert_close(found(features)[:, head].flatten(0, 1), x @ wanted[:-1] + wanted[-1])


def test_features_of_all_heads_may_be_the_same():
    features, targets = draw(5, 1, 20, 3), draw(5, 2, 20, 4, seed=1)
    apart = solved(features.expand(-1, 2, -1, -1), targets)
    torch.testing.assert_close(solved(features, targets).weights, apart.weights)


def test_directions_that_features_do_not_have_get_no_weight():
    features = draw(5, 1, 20, 3)
    features = torch.cat([features, features.sum(dim=-1, keepdim=True)], dim=-1)
    weights = draw(1, 4, 2, seed=1)
    found = solved(features, features @ weights + 3)
    torch.testing.assert_close(found(features), features @ weights + 3)
    assert found.weights.norm() <= weights.norm()


def test_no_map_is_fitted_to_fewer_tokens_than_it_has_parameters():
    assert solved(draw(1, 1, 4, 3), draw(1, 1, 4, 2)) is None
    assert RegressionSums().solve() is None


def test_the_principal_axes_of_a_map_are_those_of_what_it_predicts():
    features = draw(5, 1, 20, 3)
    weights = draw(1, 3, 1, seed=1) @ draw(1, 1, 4, seed=2)
    axes = solved(features, features @ weights).principal_axes()
    torch.testing.assert_close(
        (weights @ axes[..., 1:]).norm(), torch.tensor(0.0, dtype=torch.float64), atol=1e-9, rtol=0
    )
