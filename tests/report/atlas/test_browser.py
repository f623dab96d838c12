"""The page over all models in a browser."""

import pytest

from attnaudit.report.atlas import write_atlas
from tests.report.atlas.made_up import audits, failure


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_atlas(audits(), [failure()], tmp_path_factory.mktemp("atlas"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_the_page_fits_its_window_in_light_and_dark(opened, page, width, scheme):
    tab = opened(page, width, scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in background[4:-1].split(",")) > 384) == (scheme == "light")


def test_fields_can_be_hidden_and_bars_count_what_is_left(opened, page):
    tab = opened(page)
    rows = tab.locator('table[data-name="claims"] tbody tr:visible')
    counts = tab.locator(".tally").first.locator(".bar i:visible")
    assert rows.count() == 30
    tab.locator(".chip[data-field=vision]").click()
    assert rows.count() == 27
    assert tab.locator("[data-count]").inner_text() == "27 models"
    assert sum(map(int, counts.all_inner_texts())) == 27
    tab.locator(".chip[data-field=music]").dblclick()
    assert {own.inner_text() for own in rows.locator(".field").all()} == {"music"}
    tab.locator("[data-all]").click()
    assert rows.count() == 30


def test_models_are_sorted_by_a_claim_and_those_without_a_score_come_last(opened, page):
    tab = opened(page)
    table = tab.locator('table[data-name="claims"]')
    table.locator("thead button", has_text="kpca-values").click()
    values = table.locator('td[data-claim="kpca-values"]').evaluate_all(
        "cells => cells.map((own) => own.dataset.value)"
    )
    scored = [float(value) for value in values if value]
    assert scored == sorted(scored)
    assert values[len(scored) :] == [""] * (30 - len(scored))
