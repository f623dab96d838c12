"""The page in a browser: Debian's Chromium, driven by playwright."""

import csv
import math

import pytest

from attnaudit.records.audit import open_audit
from attnaudit.report.page import write_page
from tests.report.head_views import picture_view, text_view, write_views
from tests.report.synthetic import write_run


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    return write_page([open_audit(write_run(folder / "run"))], folder / "page.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_the_page_fits_its_window_in_light_and_dark(opened, plain, width, scheme):
    tab = opened(plain, width, scheme)
    assert tab.locator(".card").count() == 2
    assert tab.locator("[data-draw=strips] svg").count() == 3
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in background[4:-1].split(","))
    assert (brightness > 384) == (scheme == "light")


def test_a_click_on_the_heat_map_opens_the_head(opened, plain):
    tab = opened(plain)
    tab.locator(".cell[data-row='1'][data-column='2']").click()
    detail = tab.locator(".detail")
    assert detail.locator("h3").inner_text() == "Layer 1, head 2"
    assert "largest over its bound" in detail.inner_text()
    assert "repeat the command with --keep-maps" in detail.inner_text()
    assert "Between chance and the claim" in tab.locator(".opened").inner_text()
    tab.locator(".opened summary").click()
    assert "eigenvalue_bound_ratio" in tab.locator(".opened").inner_text()
    tab.locator("select").select_option(label="linear_cka")
    assert "linear_cka" in tab.locator(".heat figcaption").inner_text()


def written(folder, *views):
    run = open_audit(write_views(write_run(folder / "run"), views))
    return write_page([run], folder / "page.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_a_head_opens_with_attention_on_the_picture_spectrum_and_columns(opened, tmp_path, width, scheme):
    tab = opened(written(tmp_path, picture_view("one"), picture_view("two")), width, scheme)
    tab.locator(".cell[data-row='1'][data-column='0']").click()
    assert tab.locator(".detail image").count() == 3  # the input, and two rows of attention over it
    assert tab.locator(".detail rect").count() == 2 * 16
    titles = tab.locator(".opened figcaption strong").all_inner_texts()
    assert titles == [
        *("Between chance and the claim", "Eigenvalue spectrum"),
        *("Values beside the theory", "All columns in the best assignment"),
    ]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_another_input_is_chosen_by_keyboard(opened, tmp_path):
    tab = opened(written(tmp_path, picture_view("one"), picture_view("two")))
    tab.locator(".cell[tabindex='0']").focus()
    tab.keyboard.press("Enter")
    tab.get_by_label("Input:").focus()
    tab.keyboard.press("ArrowDown")
    assert "on two" in tab.locator(".opened").inner_text()
    assert tab.evaluate("document.activeElement.value") == "1"


def test_a_head_of_a_text_colours_its_tokens(opened, tmp_path):
    tab = opened(written(tmp_path, text_view([f"word{k}" for k in range(30)], causal=True, one_query=29)))
    tab.locator(".cell").first.click()
    assert tab.locator(".tokens span").all_inner_texts() == [f"word{k}" for k in range(30)]
    assert "no token sees a later one" in tab.locator(".detail").inner_text()
    tab.get_by_label("Attention of:").select_option(label="the last token, word29")
    assert tab.locator(".opened figcaption strong").all_inner_texts()[1] == "Among the first 24 tokens"


def test_windows_are_shown_beside_the_picture_and_missing_columns_have_a_reason(opened, tmp_path):
    view = picture_view(windows=64, columns=None, cosines=(), problem="the keys are all equal")
    tab = opened(written(tmp_path, view))
    tab.locator(".cell").first.click()
    assert tab.locator(".detail image").count() == 0
    assert "64 windows: this is the first" in tab.locator(".detail").inner_text()
    assert "the keys are all equal" in tab.locator(".opened").inner_text()


@pytest.mark.parametrize("token", ["</script><img src=x onerror=alert(1)>", "x" * 10_000, "\u202eשלום 🤖", " ", ""])
def test_hostile_tokens_harm_nobody(opened, tmp_path, token):
    tab = opened(written(tmp_path, text_view([token] * 30, name=token)), 390)
    tab.locator(".cell").first.click()
    assert tab.locator(".tokens img, .opened img").count() == 0
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_an_opened_head_comes_into_sight_on_a_phone(opened, tmp_path):
    tab = opened(written(tmp_path, picture_view()), 390)
    tab.locator(".cell").last.click()
    box = tab.locator(".detail h3").bounding_box()
    assert 0 <= box["y"] <= 900


def test_the_heat_map_works_by_keyboard_and_tells_its_values(opened, plain):
    tab = opened(plain)
    tab.locator(".cell[tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        tab.keyboard.press(key)
    assert tab.locator(".detail h3").inner_text() == "Layer 1, head 1"
    assert "layer 1, head 1" in tab.locator("#tip").inner_text()
    assert tab.locator(".cell[aria-selected='true']").get_attribute("aria-label").startswith("layer 1, head 1, ")


def test_tables_sort_both_ways(opened, plain):
    tab = opened(plain)
    table = tab.locator("table[data-name=scores]")
    heading = table.get_by_role("button", name="observed")
    for direction in ("ascending", "descending"):
        heading.click()
        values = [
            float(cell.get_attribute("data-value") or "nan") for cell in table.locator("tbody td:nth-child(3)").all()
        ]
        present = [value for value in values if not math.isnan(value)]
        assert present == sorted(present, reverse=direction == "descending")
        assert values[: len(present)] == present
        assert table.locator(f"th[aria-sort={direction}]").count() == 1


def test_figures_can_be_taken_along(opened, plain, tmp_path):
    tab = opened(plain)
    figure = tab.locator("[data-draw=strips] figure").first
    for kind in ("SVG", "CSV"):
        with tab.expect_download() as started:
            figure.get_by_role("button", name=kind).click()
        started.value.save_as(tmp_path / kind)
    assert (tmp_path / "SVG").read_text().startswith("<svg")
    rows = list(csv.DictReader((tmp_path / "CSV").read_text().splitlines()))
    assert {row["reference"] for row in rows} >= {"observed", "planted"}


def test_several_runs_are_overlaid(opened, tmp_path):
    runs = [open_audit(write_run(tmp_path / name, shift=shift)) for name, shift in (("a", 0.0), ("b", 0.2))]
    tab = opened(write_page(runs, tmp_path / "page.html"))
    assert tab.locator("[data-draw=overlays] svg").count() == 3
    assert tab.locator("[data-draw=overlays] svg").first.locator("polyline").count() == 2


@pytest.mark.parametrize("name", ["</script><img src=x onerror=alert(1)>", "x" * 10_000, "\u202eשלום 🤖"])
def test_hostile_names_and_missing_numbers_harm_nobody(opened, tmp_path, name):
    run = open_audit(write_run(tmp_path / "run", model=name, reason=name, lost=0.95, names=[name, name + "2"]))
    for width in (1440, 390):
        tab = opened(write_page([run, run], tmp_path / "page.html"), width)
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")  # draws everything
        assert tab.locator("h1 img").count() == 0
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1440, 390])
def test_no_text_of_a_figure_is_cut(opened, plain, width):
    tab = opened(plain, width)
    cut = """() => [...document.querySelectorAll("svg.figure text")].filter((text) => {
        const [own, whole] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
        return own.left < whole.left - 1 || own.right > whole.right + 1;
    }).map((text) => text.textContent)"""
    assert tab.evaluate(cut) == []


def test_figures_without_a_number_are_not_drawn(opened, tmp_path):
    tab = opened(write_page([open_audit(write_run(tmp_path / "run", lost=1.0))], tmp_path / "page.html"))
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("[data-draw=strips] svg").count() == 0
    assert "There is nothing to draw" in tab.locator("main").inner_text()
    assert tab.locator("[data-draw=heatmap] option").all_inner_texts() == ["kernel_rank"]


def test_a_head_without_numbers_says_so_where_others_have_them(opened, tmp_path):
    tab = opened(write_page([open_audit(write_run(tmp_path / "run", lost=0.9))], tmp_path / "page.html"))
    tab.locator(".cell.empty").first.click()
    tab.locator(".opened summary").click()
    assert "missing, 8 inputs" in tab.locator(".opened").inner_text()


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("section", ["how", "settings"])
@pytest.mark.parametrize("way", ["link", "address"])
def test_links_land_where_they_say(opened, plain, width, section, way):
    tab = opened(plain, width)
    tab.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    if way == "link":
        tab.locator(f"nav a[href='#{section}']").click()
    else:
        tab.evaluate(
            "(section) => new Promise((done) => { addEventListener('hashchange', done); location.hash = section; })",
            section,
        )
    place = "document.getElementById('{}').getBoundingClientRect().top"
    bottom = "document.documentElement.scrollHeight - innerHeight - scrollY"
    assert abs(tab.evaluate(place.format(section))) < 2 or tab.evaluate(bottom) < 2
    assert tab.locator("[data-draw]:empty").count() == 0


def test_nothing_is_wider_than_a_phone_but_the_map_of_theories(opened, plain):
    tab = opened(plain, 390)
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    beyond = "[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)"
    assert tab.evaluate(f"{beyond}.map((e) => e.outerHTML.slice(0, 80))") == []


def test_scores_beyond_the_scale_have_arrows(opened, tmp_path):
    tab = opened(write_page([open_audit(write_run(tmp_path / "run", shift=-0.5))], tmp_path / "page.html"))
    assert tab.locator(".gauge .beyond.left").count() >= 3
    assert tab.locator(".gauge .mark").count() < tab.locator(".gauge").count()


def test_38_400_heads_are_drawn(opened, large_page):
    tab = opened(large_page)
    assert tab.locator(".cell").count() == 24 * 16
    tab.locator(".cell").last.click()
    assert tab.locator(".detail h3").inner_text() == "Layer 23, head 15"
