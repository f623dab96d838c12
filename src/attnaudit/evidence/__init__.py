"""Schema, run folder, resume, and where the work runs."""

from attnaudit.evidence.plan import Plan, plan_audit
from attnaudit.evidence.resources import Resources
from attnaudit.evidence.run import Measured, execute
from attnaudit.evidence.settings import Settings, shard_size

__all__ = ["Measured", "Plan", "Resources", "Settings", "execute", "plan_audit", "shard_size"]
