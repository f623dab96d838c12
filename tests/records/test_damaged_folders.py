"""A damaged run folder is refused in one sentence; `benchmarks/integrity_damage.py` tries more."""

import shutil

import pytest

from attnaudit.errors import RunFolderError
from attnaudit.records.audit import open_audit
from attnaudit.records.evaluated_networks import open_evaluation
from attnaudit.records.training import open_training
from tests.claims.evaluations import GAIN, pairs, write_evaluation
from tests.report.synthetic import write_run
from tests.training_runs import write_training


def audit(path):
    write_run(path, layers=1, heads=1, inputs=2)
    return lambda: (open_audit(path).summary, open_audit(path).settings, open_audit(path).evidence.to_pylist())


def training(path):
    write_training(path, layers=1, heads=1)
    return lambda: (open_training(path).settings, open_training(path).rows.table().to_pylist())


def evaluation(path):
    write_evaluation(path, pairs(GAIN, GAIN))
    return lambda: open_evaluation(path)


def replaced_by_folder(file):
    file.unlink()
    file.mkdir()


def link(target):
    def replace(file):
        file.unlink()
        file.symlink_to(target(file))

    return replace


DAMAGES = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "emptied": lambda file: file.write_bytes(b""),
    "binary": lambda file: file.write_bytes(bytes(range(256)) * 3),
    "deleted": lambda file: file.unlink(),
    "a folder": replaced_by_folder,
    "a link to nowhere": link(lambda file: "nowhere"),
    "a link to itself": link(lambda file: file.name),
    "nested": lambda file: file.write_text('{"identity": ' + "[" * 10**5),
    "a long number": lambda file: file.write_text('{"identity": {"a": ' + "1" * 5000 + "}}"),
    "half a character": lambda file: file.write_text('{"identity": {"a": "\\\\ud800"}}'),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("write", [audit, training, evaluation])
def test_a_damaged_file_is_named_in_one_sentence(tmp_path, write, damage):
    whole, copy = tmp_path / "whole", tmp_path / "run"
    read = write(copy)
    read()
    shutil.copytree(copy, whole)
    for file in sorted(path.relative_to(copy) for path in copy.rglob("*") if path.is_file() and path.name[0] != "."):
        shutil.rmtree(copy)
        shutil.copytree(whole, copy)
        DAMAGES[damage](copy / file)
        with pytest.raises(RunFolderError) as caught:
            read()
        assert str(copy) in str(caught.value)
        assert "\n" not in str(caught.value)
        str(caught.value).encode()  # it can be printed


@pytest.mark.parametrize("write", [audit, training])
def test_a_folder_of_parts_that_is_none_is_refused(tmp_path, write):
    read = write(tmp_path / "run")
    parts = tmp_path / "run" / "evidence"
    for damage in (lambda: None, lambda: parts.write_text(""), lambda: parts.symlink_to("evidence")):
        shutil.rmtree(parts) if parts.is_dir() else parts.unlink(missing_ok=True)
        damage()
        with pytest.raises(RunFolderError, match=str(tmp_path / "run")):
            read()
