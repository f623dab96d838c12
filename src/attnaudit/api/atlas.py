"""All trained models that need no hub, audited one after the other and shown side by side."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from attnaudit import defaults
from attnaudit._version import __version__
from attnaudit.api.atlas_runs import AtlasRuns
from attnaudit.api.audits import audit
from attnaudit.api.runs import Run
from attnaudit.api.runs import open as open_run
from attnaudit.claims import study_similarity
from attnaudit.claims.meanings import RecordKind
from attnaudit.claims.registry import CLAIMS
from attnaudit.errors import AttnAuditError, RunFolderError, UsageError, first_line, unknown
from attnaudit.records import json_file
from attnaudit.records.engine import Progress, Resources, default_memory, parse_memory
from attnaudit.records.files import make_folder
from attnaudit.records.identity import ATLAS, begins
from attnaudit.records.keep import Keep
from attnaudit.records.run_folder import FORMAT, RunFolder
from attnaudit.report.atlas import INDEX, AtlasAudit, AtlasFailure, read_card, write_atlas, write_card
from attnaudit.report.atlas.audits import is_baseline
from attnaudit.report.page import FILE
from attnaudit.report.progress import duration
from attnaudit.sources.catalogue import FIELDS, CatalogueEntry, catalogue
from attnaudit.theories.registry import ALL

_log = logging.getLogger(__name__)
#: Claims about models, those on request too, as their theories are compared anyway; but not the one that needs the
#: study's protocol, and not what is true by construction.
_JUDGED = tuple(
    own.name
    for own in CLAIMS.values()
    if RecordKind.AUDIT in own.reads and own.theory in ALL and own != study_similarity.CLAIM
    if not is_baseline(own.theory)
)


@dataclass(frozen=True)
class Atlas:
    """Models that were audited, and models that could not be, with the reason; all is in the folder `path`."""

    path: Path
    audits: tuple[AtlasAudit, ...]
    failures: tuple[AtlasFailure, ...]

    @property
    def page(self) -> Path:
        """The page over all models."""
        return self.path / INDEX


def atlas(
    out: str | Path,
    *,
    only: Sequence[str] | Literal["all"] = "all",
    models: Sequence[str] | Literal["all"] = "all",
    download: bool = False,
    limit: int | None = defaults.LIMIT,
    seed: int = defaults.SEED,
    device: str = defaults.DEVICE,
    workers: int | None = None,
    cluster: str | None = None,
    memory: str | int | None = None,
    keep: Keep | str = Keep.ROWS,
    progress: Progress | bool = True,
) -> Atlas:
    """Audit models that need no hub, all claims and theories, and write a page over all of them.

    Each model has a run folder of its own below `out`, with its page, `report.html`, and its card, `card.md` and
    `card.json`. Beside them are the page over all, `index.html`, the table `atlas.csv`, and `heads.parquet` with the
    scores of all heads. Repeating the call resumes: what is finished is not computed again, and the page has all that
    is finished. A model that fails does not stop the others; nor does a folder that holds another run than the call
    would make, which is a failure, too.

    Args:
        out: the folder.
        only: fields, such as `"vision"`, or `"all"`.
        models: names, see `attnaudit ls models`, or `"all"`.
        download: allow the network for packages that are not here; their licences are said first.
        limit: how many inputs to draw for each model; all if None.
        seed: of every random choice.
        device: `cpu`, `cuda`, or `auto` for the GPU if there is one.
        workers: processes; as many as pay off if None.
        cluster: address of a dask scheduler whose workers do the work instead.
        memory: what an audit may take, as bytes or `"8GB"`; half of the machine's memory if None.
        keep: what each run keeps, `rows` or the smaller `summaries`; runs that are finished with rows become such with
            summaries.
        progress: a function that is told of every finished unit; True for a bar, False for none.

    Raises:
        UsageError: a field or a model is unknown, or another argument is invalid.
        RunFolderError: the folder holds something else, or an atlas with another limit or seed.
    """
    folder, known = Path(out), catalogue()
    chosen = _chosen(known, only, models)
    runs = AtlasRuns.of(_JUDGED, limit, seed, device)
    Resources(workers, cluster, default_memory() if memory is None else parse_memory(str(memory)))
    if keep not in list(Keep):
        raise unknown("keep", str(keep), list(Keep))
    _begin(folder, {"kind": "atlas", "limit": limit, "seed": seed})

    def audited(entry: CatalogueEntry) -> Run:
        return audit(
            entry.name,
            download=download,
            limit=limit,
            seed=seed,
            claims=_JUDGED,
            theories="all",
            device=device,
            workers=workers,
            cluster=cluster,
            memory=memory,
            keep=keep,
            out=folder / entry.name,
            progress=progress,
        )

    audits, failures = [], []
    for entry in known.values():
        path = folder / entry.name
        is_finished = RunFolder(path).summary_file.exists()
        if not is_finished and entry not in chosen:
            continue
        begun = time.monotonic()
        try:
            if is_finished:
                run, seconds = open_run(path), _known_seconds(path)
                runs.check(run, entry)
                if keep == Keep.SUMMARIES and run.settings.keep is Keep.ROWS and entry in chosen:
                    run = _folded(run, entry, audited)
            else:
                place = f"{chosen.index(entry) + 1} of {len(chosen)}"
                _log.info("%s, %s: %s, licence %s.", entry.name, place, entry.architecture, entry.licence)
                run = audited(entry)
                seconds = time.monotonic() - begun
                _log.info("%s took %s.", entry.name, duration(seconds))
            audits.append(_kept(run, entry, seconds, _command(entry, limit, seed)))
        except Exception as error:  # one network that fails, in whatever way, must not cost the others
            reason = _reason(error)
            failures.append(AtlasFailure(entry, reason))
            _log.warning("%s failed: %s", entry.name, reason)
    write_atlas(audits, failures, folder)
    return Atlas(folder, tuple(audits), tuple(failures))


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, AttnAuditError) else f"{type(error).__name__}: {first_line(error)}"


def _folded(run: Run, entry: CatalogueEntry, audited: Callable[[CatalogueEntry], Run]) -> Run:
    """A finished run with rows as one with summaries; as it is if the model cannot be loaded, or not on its device."""
    try:
        return audited(entry)
    except AttnAuditError as error:
        _log.warning("%s keeps its rows: %s", entry.name, _reason(error))
        return run


def _chosen(
    known: Mapping[str, CatalogueEntry], only: Sequence[str] | Literal["all"], models: Sequence[str] | Literal["all"]
) -> list[CatalogueEntry]:
    if not models:
        raise UsageError("--models none leaves nothing to audit.")
    fields = FIELDS if only == "all" else tuple(only)
    for field in fields:
        if field not in FIELDS:
            raise unknown("field", field, FIELDS)
    names = [name.removeprefix("atlas:") for name in (known if models == "all" else models)]
    for name in names:
        if name not in known:
            raise unknown("model", name, known)
    found = [entry for entry in known.values() if entry.name in names and entry.field in fields]
    if not found:
        raise UsageError(f"None of these models is of the field {' or '.join(fields)}: attnaudit ls models shows it.")
    return found


def _begin(folder: Path, identity: dict[str, Any]) -> None:
    """Make the folder, or go on in it."""
    if begins(folder / ATLAS, identity):
        make_folder(folder)
        json_file.write(folder / ATLAS, {"format": FORMAT, "identity": identity, "attnaudit": __version__})


def _kept(run: Run, entry: CatalogueEntry, seconds: float | None, command: str) -> AtlasAudit:
    """What the atlas keeps of a run, after its page and card are written."""
    if not (run.path / FILE).exists():
        run.report()
    found = AtlasAudit(entry, run.models[0], run.settings, run.summary, seconds)
    write_card(found, command, run.path)
    return found


def _known_seconds(path: Path) -> float | None:
    """How long a finished audit took, from its card; None if that was not written any more."""
    try:
        return read_card(path).seconds
    except (FileNotFoundError, RunFolderError):
        return None


def _command(entry: CatalogueEntry, limit: int | None, seed: int) -> str:
    """The command line that repeats the audit of a model."""
    words = ["attnaudit audit", entry.name]
    words += ["--download"] if entry.megabytes is not None else []
    words += ["--limit", str(limit)] if limit is not None else []
    return " ".join([*words, "--seed", str(seed), "--claims", ",".join(_JUDGED), "--theories all"])
