"""The public API: what it returns, where it writes, and that the command line has the same defaults."""

import inspect
import re
import subprocess
import sys
from enum import Enum
from pathlib import Path

import pytest
import torch
import typer

import attnaudit
from attnaudit.errors import UsageError

UNGUARDED = """
import attnaudit

print("started")
run = attnaudit.audit("test_vit", "images", random_weights=True, claims=["kpca-values"],
                      references=["gaussian", "planted"], workers=2, out="run")
print(len(run.rows), "rows")
"""
OWN_THEORY = """
import torch

import attnaudit
from attnaudit.kernel import Prediction


class ValuesAreKeys:
    name = "keys"
    text = "values equal keys"

    def predict(self, heads, spectrum, protocol):
        return Prediction(heads.key.double(), torch.zeros(len(heads), dtype=torch.float64), (None,) * len(heads))


run = attnaudit.audit("test_vit", "images", random_weights=True, claims=["kpca-values"],
                      references=["gaussian", "planted"], theories=[ValuesAreKeys()], workers=2, out="run")
print(run.evidence["theory"].unique().to_pylist())
"""


def run_script(text, folder):
    (folder / "script.py").write_text(text)
    result = subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result


def test_a_script_without_a_main_guard_may_use_workers(tmp_path, image_folder):
    pytest.importorskip("timm")
    result = run_script(UNGUARDED, tmp_path)
    assert result.stdout.count("started") == 1
    assert result.stdout.count("rows") == 1
    assert all("so far" in line for line in result.stderr.splitlines())  # no bar where nobody would see it


def test_a_theory_defined_in_a_script_is_computed_in_its_process(tmp_path, image_folder):
    pytest.importorskip("timm")
    assert "'keys'" in run_script(OWN_THEORY, tmp_path).stdout


#: Options that only one side has: tables of the terminal, objects of Python.
ONE_SIDED = {"json", "wide", "fail_on", "details", "measures", "progress"}
#: Options of the terminal that are one argument in Python, or take more there.
PLACES = {"images", "text", "parquet", "inputs", "kind", "groups", "group_by_folder"}


def functions():
    from attnaudit import cli
    from attnaudit.api import (
        atlas,
        audits,
        benchmark,
        judging,
        laboratory,
        machine,
        papers,
        reports,
        robustness,
        trainings,
    )

    return {
        "atlas": (cli.atlas.atlas, atlas.atlas),
        "audit": (cli.audit.audit, audits.audit),
        "robust": (cli.robust.robust, robustness.robust),
        "corrupt": (cli.corrupt.corrupt, robustness.corrupt),
        "bench": (cli.bench.bench, benchmark.bench),
        "doctor": (cli.doctor.doctor, machine.doctor),
        "paper": (cli.paper.paper, papers.paper),
        "train": (cli.train.train, trainings.train),
        "judge": (cli.judge.judge, judging.judge),
        "diff": (cli.diff.diff, judging.diff),
        "report": (cli.report.report, reports.report),
        "gaussian align": (cli.gaussian.align.align, laboratory.align),
        "gaussian landscape": (cli.gaussian.landscape.landscape, laboratory.landscape),
        "gaussian finite-prompt": (cli.gaussian.finite_prompt.finite_prompt, laboratory.finite_prompt),
        "gaussian in-context": (cli.gaussian.in_context.in_context, laboratory.in_context),
        "gaussian digits": (cli.gaussian.digits.digits, laboratory.digits),
    }


def typed(value):
    """A default as a person would type it."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (tuple, list)):
        return ",".join(map(str, value)) or "none"
    return str(value) if isinstance(value, Path) else value


def defaults_of(function):
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        value = parameter.default
        if name in ONE_SIDED | PLACES or value is inspect.Parameter.empty:
            continue
        assert not isinstance(value, typer.models.ParameterInfo), name
        found[name] = typed(value)
    return found


@pytest.mark.parametrize("verb", functions())
def test_python_and_the_command_line_have_the_same_defaults(verb):
    command, function = functions()[verb]
    assert defaults_of(command) == defaults_of(function)


def test_a_run_without_a_folder_goes_where_the_command_line_puts_it_and_says_so(image_folder):
    pytest.importorskip("timm")
    run = attnaudit.audit("test_vit", image_folder, random_weights=True, limit=1, claims=(), references=())
    assert run.path.parent.name == "attnaudit-runs"
    assert run.path.name.startswith("test_vit")
    assert str(run.path) in repr(run)
    assert str(run).splitlines()[0] == "Heads of test_vit (random weights) were measured, and no claim was judged."


LASTING = """
import torch, attnaudit

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.qkv = torch.nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

batch = torch.linspace(-1, 1, 160).reshape(1, 20, 8).sin()
run = attnaudit.audit(Net(), batch, claims=(), references=("gaussian",), measures=("linear_cka",), progress=False)
run.report()
print(run)
"""


def test_the_run_of_a_module_in_memory_lasts_where_its_text_says_and_is_resumed_by_the_same_program(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(LASTING)
    for _ in range(2):
        command = [sys.executable, str(script)]
        told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        (folder,) = (tmp_path / "attnaudit-runs").iterdir()
        assert re.fullmatch(r"Net-exact-[0-9a-f]{8}", folder.name)
        assert f"attnaudit-runs/{folder.name}" in told
        assert (folder / "report.html").is_file()
        assert attnaudit.open(folder).evidence.num_rows > 0
    script.write_text(LASTING.replace("(q, k, v)", "(q, k, v, scale=1.0)"))
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert len(list((tmp_path / "attnaudit-runs").iterdir())) == 2


def test_an_audit_and_its_folder_opened_again_are_the_same_run(tmp_path, image_folder):
    pytest.importorskip("timm")
    options = {"claims": ["kpca-values"], "references": ["gaussian", "planted"], "out": tmp_path / "run"}
    run = attnaudit.audit("test_vit", image_folder, random_weights=True, limit=2, progress=False, **options)
    opened = attnaudit.open(tmp_path / "run")
    assert type(opened) is type(run) is attnaudit.Run
    assert opened.summary == run.summary
    assert opened.settings == run.settings
    assert opened.evidence.equals(run.evidence)
    assert opened.layers().equals(run.layers())
    assert {"layer", "heads", "procrustes", "procrustes score"} <= {*run.layers().column_names}
    assert repr(opened) == repr(run)
    assert opened._repr_html_() == run._repr_html_()
    assert attnaudit.report(tmp_path / "run", tmp_path / "page.html").read_text() == run.report().read_text()
    assert not any(change.beyond_noise for change in attnaudit.diff(run.path, opened.path).changes)


def test_a_summary_is_written_once_with_its_verdicts(tmp_path, image_folder, monkeypatch):
    pytest.importorskip("timm")
    from attnaudit.records.run_folder import RunFolder

    written = []
    monkeypatch.setattr(RunFolder, "write_summary", lambda folder, summary: written.append(summary))
    options = {"claims": ["kpca-eigenvalues"], "references": ["gaussian", "planted"], "out": tmp_path / "run"}
    run = attnaudit.audit("test_vit", image_folder, random_weights=True, limit=1, **options)
    assert written == [run.summary]
    assert [verdict.claim for verdict in run.verdicts] == ["kpca-eigenvalues"]


def test_the_names_of_the_package_can_all_be_had():
    for name in attnaudit.__all__:
        assert getattr(attnaudit, name) is not None
    functions = {name for name in attnaudit.__all__ if callable(getattr(attnaudit, name)) and name.islower()}
    assert functions == {
        "atlas", "audit", "capture", "corrupt", "cost", "diff", "judge", "open", "paper", "report", "robust", "train",
    }  # fmt: skip


def test_an_unknown_device_is_a_usage_error(image_folder):
    with pytest.raises(UsageError, match="'tpu'"):
        attnaudit.audit("test_vit", image_folder, random_weights=True, device="tpu")


@pytest.mark.parametrize(
    ("inputs", "groups", "message"),
    [
        (torch.zeros(2, 3, 160, 160), "folder", "A batch or loader has no folders"),
        ("images", ["a", "b"], 'groups must be "folder" for named inputs'),
    ],
)
def test_groups_are_folders_of_images_or_a_list_for_a_batch(inputs, groups, message):
    pytest.importorskip("timm")
    with pytest.raises(UsageError, match=message):
        attnaudit.audit("test_vit", inputs, random_weights=True, groups=groups)
