"""Schema, run folder, resume, and where the work runs."""

from attnaudit.audit.plan import AuditPlan, plan_audit
from attnaudit.audit.resources import Resources
from attnaudit.audit.run import Measured, execute
from attnaudit.audit.settings import AuditSettings, shard_size

__all__ = ["AuditPlan", "AuditSettings", "Measured", "Resources", "execute", "plan_audit", "shard_size"]
