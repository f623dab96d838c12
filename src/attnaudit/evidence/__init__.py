"""Schema, run folder, resume, and where the work runs."""

from attnaudit.evidence.plan import Plan, plan_audit
from attnaudit.evidence.resources import Resources
from attnaudit.evidence.run import Measured, execute
from attnaudit.evidence.settings import SHARD, Settings

__all__ = ["SHARD", "Measured", "Plan", "Resources", "Settings", "execute", "plan_audit"]
