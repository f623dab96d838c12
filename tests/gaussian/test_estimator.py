import numpy as np
import pytest
import torch

from attnaudit.errors import UsageError
from attnaudit.gaussian import cosine, descend, explained_variance_ratio, infinite_prompt, random_start, second_moment
from tests.gaussian.setting import seeded

pytest.importorskip("sklearn")
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.utils.estimator_checks import check_estimator

from attnaudit.gaussian import AttentionPCA


@pytest.mark.parametrize("kernel", ["linear", "softmax"])
@pytest.mark.filterwarnings("ignore")
def test_it_is_an_estimator_of_scikit_learn(kernel):
    check_estimator(AttentionPCA(n_components=1, kernel=kernel, steps=10, length=16))


@pytest.fixture(scope="module")
def digits():
    return load_digits().data


@pytest.fixture(scope="module")
def covariance(digits):
    rows = torch.tensor(digits)
    moment = second_moment(rows - rows.mean(dim=0))
    return moment / moment.norm()


def test_a19_descent_on_the_digits_finds_the_first_component_when_read_through_sigma(digits, covariance):
    start = random_start(covariance, 1, seeded(0))
    mu = descend(infinite_prompt(), covariance, start, steps=3000, step=1.6, records=1).end[:, 0]
    first = torch.tensor(PCA(1).fit(digits).components_[0])
    assert float(cosine(covariance @ mu, first)) > 0.9999
    assert float(cosine(mu, first)) < 0.99, "μ itself holds what the start left in directions of no variance"


@pytest.mark.parametrize("rank", [5, 10])
def test_a19_heads_of_rank_k_explain_what_pca_does(digits, covariance, rank):
    start = random_start(covariance, rank, seeded(rank), 0.5 / rank)
    weights = descend(infinite_prompt(), covariance, start, steps=6000, step=1.6, records=1).end
    expected = PCA(rank).fit(digits).explained_variance_ratio_.sum()
    assert float(explained_variance_ratio(weights, covariance)) == pytest.approx(expected, abs=1e-4)


def test_the_linear_kernel_gives_pca(digits):
    ours, theirs = AttentionPCA(10).fit(digits), PCA(10, svd_solver="full").fit(digits)
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, atol=1e-6)
    np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_, rtol=1e-5)
    assert np.abs((ours.components_ * theirs.components_).sum(axis=1)).min() > 0.9999
    np.testing.assert_allclose(ours.components_ @ ours.components_.T, np.eye(10), atol=1e-12)


def test_the_softmax_kernel_finds_the_axis_of_gaussian_data():
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(2000, 5)) * [3, 1.5, 1, 1, 0.5] + 10
    fitted = AttentionPCA(1, kernel="softmax", length=32, steps=200).fit(rows)
    assert abs(fitted.components_[0, 0]) > 0.99
    np.testing.assert_allclose(fitted.mean_, rows.mean(axis=0))


def test_all_components_give_the_rows_back():
    rows = np.random.default_rng(1).normal(size=(50, 4))
    fitted = AttentionPCA().fit(rows)
    np.testing.assert_allclose(fitted.inverse_transform(fitted.transform(rows)), rows, atol=1e-8)
    assert fitted.get_feature_names_out().tolist() == [f"attentionpca{i}" for i in range(4)]
    assert fitted.explained_variance_ratio_.sum() == pytest.approx(1)


def test_constant_rows_have_no_variance_to_explain():
    fitted = AttentionPCA(1).fit(np.ones((5, 3)))
    assert np.isnan(fitted.explained_variance_ratio_).all()
    assert fitted.explained_variance_.tolist() == [0.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 9}, "between 1 and 4.* got 9"),
        ({"n_components": 0}, "between 1 and 4.* got 0"),
        ({"kernel": "cubic"}, "kernel 'cubic'.* linear, softmax"),
        ({"length": 1}, "length .* got 1"),
    ],
)
def test_fit_refuses_what_makes_no_sense(options, message):
    with pytest.raises(UsageError, match=message):
        AttentionPCA(**options).fit(np.random.default_rng(0).normal(size=(10, 4)))


@pytest.mark.parametrize(
    "options", [{"n_components": 1.5}, {"n_components": "mle"}, {"length": 2.5}, {"steps": "many"}]
)
def test_numbers_that_are_not_integers_are_an_error(options):
    ((name, value),) = options.items()
    with pytest.raises(UsageError, match=f"{name} must be an integer, got {value!r}"):
        AttentionPCA(**options).fit(np.random.default_rng(0).normal(size=(20, 3)))
