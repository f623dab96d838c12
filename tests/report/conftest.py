import pytest

from tests.report.synthetic import write_run


@pytest.fixture(scope="session")
def large_run(tmp_path_factory):
    """As many heads as ViT-Large has on 100 pictures."""
    return write_run(tmp_path_factory.mktemp("large") / "run", model="vit_large", layers=24, heads=16, inputs=100)
