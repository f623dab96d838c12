"""The images in this folder, taken of pages of runs with maps of heads.

python docs/report/screenshots.py TEXT_RUN/report.html PICTURE_RUN/report.html

The first is of `attnaudit audit minilm --keep-maps`, the other of `attnaudit audit deit_tiny_patch16_224 --keep-maps`
on photographs of scikit-image, of which the second is the cat.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

HERE = Path(__file__).parent


def main(text: Path, picture: Path) -> None:
    """The first screen in two widths, light and dark, and a head of either run that was clicked."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, width, height, scheme in (
            ("first-screen", 1440, 900, "light"),
            ("first-screen-dark", 1440, 900, "dark"),
            ("narrow", 390, 844, "light"),
            ("narrow-dark", 390, 844, "dark"),
        ):
            tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            _open(tab, text)
            tab.screenshot(path=HERE / f"{name}.png")
        _heads(browser, text, picture)
        browser.close()


def _heads(browser: Browser, text: Path, picture: Path) -> None:
    """A head that was clicked, on a text and on a picture."""
    for name, path, cell, width, height, scheme in (
        ("head-text", text, 30, 1440, 1440, "light"),
        ("head-picture", picture, 31, 1440, 1150, "dark"),
        ("head-narrow", picture, 31, 390, 1500, "light"),
    ):
        tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        _open(tab, path)
        to_heat_map = "document.querySelector('[data-draw=heatmap]').scrollIntoView({ behavior: 'instant' })"
        tab.evaluate(to_heat_map)  # charts are drawn when they come into view
        tab.locator(".cell").nth(cell).click()
        if path == picture:
            tab.get_by_label("Input:").select_option("1")
        tab.evaluate(to_heat_map)
        tab.mouse.move(1, 1)
        tab.screenshot(path=HERE / f"{name}.png")


def _open(tab: Page, path: Path) -> None:
    tab.goto(path.resolve().as_uri())
    tab.wait_for_selector("html[data-ready]")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
