"""The images in this folder, taken of a page: `python docs/report/screenshots.py run/report.html`."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent


def main(path: Path) -> None:
    """Two widths, light and dark, and the heat map with a head that was clicked."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, width, height, scheme in (
            ("first-screen", 1440, 900, "light"),
            ("first-screen-dark", 1440, 900, "dark"),
            ("narrow", 390, 844, "light"),
            ("narrow-dark", 390, 844, "dark"),
        ):
            tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            _open(tab, path)
            tab.screenshot(path=HERE / f"{name}.png")
        tab = browser.new_page(viewport={"width": 1440, "height": 900})
        _open(tab, path)
        to_heat_map = "document.querySelector('[data-draw=heatmap]').scrollIntoView({ behavior: 'instant' })"
        tab.evaluate(to_heat_map)  # charts are drawn when they come into view
        tab.locator(".cell").nth(17).click()
        tab.evaluate(to_heat_map)
        tab.screenshot(path=HERE / "heat-map.png")
        browser.close()


def _open(tab: Page, path: Path) -> None:
    tab.goto(path.resolve().as_uri())
    tab.wait_for_selector("html[data-ready]")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
