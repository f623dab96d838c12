"""Schema, run folder, resume, and where the work runs."""

from attnaudit.audit.plan import Plan, plan_audit
from attnaudit.audit.resources import Resources
from attnaudit.audit.run import Measured, execute
from attnaudit.audit.settings import Settings, shard_size

__all__ = ["Measured", "Plan", "Resources", "Settings", "execute", "plan_audit", "shard_size"]
