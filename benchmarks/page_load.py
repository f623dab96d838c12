"""How large is the page of as many heads as ViT-Large has on 100 images, and how soon does it answer a click?

`python -m benchmarks.page_load` in the root of the repository; needs playwright and a chromium.
"""

import shutil
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright
from tests.report.synthetic import write_run

from attnaudit.records.audit import open_audit
from attnaudit.report.page import write_page


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        run = open_audit(write_run(Path(folder) / "run", model="vit_large", layers=24, heads=16, inputs=100))
        start = time.perf_counter()
        page = write_page([run], Path(folder) / "page.html")
        print(f"{len(run.rows):,} rows of 38,400 heads: written in {time.perf_counter() - start:.1f} s, ", end="")
        print(f"{page.stat().st_size / 1e6:.2f} MB")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for repeat in range(3):
            tab = browser.new_page(viewport={"width": 1440, "height": 900})
            start = time.perf_counter()
            tab.goto(page.as_uri())
            tab.wait_for_selector("html[data-ready]")
            ready = time.perf_counter() - start
            tab.locator(".cell").last.click()
            tab.wait_for_selector(".detail h3")
            print(f"opening {repeat + 1}: drawn after {ready:.2f} s, a clicked head is open after ", end="")
            print(f"{time.perf_counter() - start:.2f} s")
            tab.close()
        browser.close()


if __name__ == "__main__":
    main()
