import shutil

import pytest

from attnaudit.records.audit import open_audit
from attnaudit.report.page import write_page
from tests.report.synthetic import write_run

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="session")
def large_page(tmp_path_factory):
    """The page of as many heads as ViT-Large has on 100 images."""
    folder = tmp_path_factory.mktemp("large")
    references = ("observed", "random_projection", "planted")
    run = write_run(folder / "run", model="vit_large", layers=24, heads=16, inputs=100, references=references)
    return write_page([open_audit(run)], folder / "page.html")


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium, driven by playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium here")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """Open a page file; at the end nothing may have gone wrong in it, and nothing may have been asked of a network."""
    complaints, requests, tabs = [], [], []

    def open_page(path, width=1440, scheme="light"):
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        tabs.append(tab)
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-ready]")
        return tab

    yield open_page
    for tab in tabs:
        tab.close()
    assert not complaints
    assert all(url.startswith(("file:", "blob:", "data:image/jpeg;")) for url in requests), requests
