import pytest

from attnaudit.records.audit import open_audit
from attnaudit.report.page import write_page
from tests.report.synthetic import write_run


@pytest.fixture(scope="session")
def large_page(tmp_path_factory):
    """The page of as many heads as ViT-Large has on 100 images."""
    folder = tmp_path_factory.mktemp("large")
    references = ("observed", "random_projection", "planted")
    run = write_run(folder / "run", model="vit_large", layers=24, heads=16, inputs=100, references=references)
    return write_page([open_audit(run)], folder / "page.html")
