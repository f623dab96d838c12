"""The engine that fills a run folder: the missing parts of a plan, here, in worker processes or on a cluster."""

from attnaudit.records.engine.execute import execute
from attnaudit.records.engine.plan import Plan, Progress, Unit, Worker, WorkerRecipe
from attnaudit.records.engine.processes import starting_processes, worker_pool
from attnaudit.records.engine.resources import PROCESS_BYTES, Resources, default_memory, format_size, parse_memory

__all__ = [
    "PROCESS_BYTES",
    "Plan",
    "Progress",
    "Resources",
    "Unit",
    "Worker",
    "WorkerRecipe",
    "default_memory",
    "execute",
    "format_size",
    "parse_memory",
    "starting_processes",
    "worker_pool",
]
