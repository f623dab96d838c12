import pytest
import torch

from attnaudit.kernel import spectrum, standardised
from attnaudit.papers.forensics import Convention, _sizes, conventions, investigate
from tests.heads import random_heads


def test_there_are_96_different_conventions():
    assert len(set(conventions())) == 96


def test_the_definition_of_the_paper_gives_the_eigenvalues_of_the_spectrum():
    heads = random_heads(0)
    stated = Convention("key-key", True, True, True, "none", False)
    torch.testing.assert_close(_sizes(heads, stated), spectrum(heads.key).eigenvalues, rtol=1e-9, atol=0)
    per_token = Convention("key-key", True, True, True, "per token", False)
    expected = spectrum(standardised(heads.key)).eigenvalues
    torch.testing.assert_close(_sizes(heads, per_token), expected, rtol=1e-6, atol=1e-15)


def test_other_conventions_equal_their_plain_formulas():
    heads = random_heads(0)
    kernel = torch.exp(heads.key @ heads.key.mT / 2)
    plain = Convention("key-key", False, False, True, "none", False)
    torch.testing.assert_close(_sizes(heads, plain), torch.linalg.eigvalsh(kernel).flip(-1)[:, :4])
    cross = torch.exp(heads.query @ heads.key.mT)
    hot = Convention("query-key", False, False, False, "none", False)
    torch.testing.assert_close(_sizes(heads, hot), torch.linalg.svdvals(cross)[:, :4])


def test_normalised_conventions_never_come_near_the_published_numbers():
    """Every normalised key-key matrix obeys the bound, so 648.46 is at least 648 times too large for it."""
    findings = investigate([random_heads(0)])
    assert len(findings) == 96
    assert [f.worst_factor for f in findings] == sorted(f.worst_factor for f in findings)
    for finding in findings:
        if finding.convention.normalised and finding.convention.pairs == "key-key":
            assert finding.worst_factor > 648
            assert not finding.fits


def test_dividing_by_n_divides_the_statistics():
    findings = {f.convention: f for f in investigate([random_heads(0)])}
    whole = Convention("key-key", False, True, True, "none", False)
    divided = Convention("key-key", False, True, True, "none", True)
    assert findings[divided].max == pytest.approx(findings[whole].max / 14)
