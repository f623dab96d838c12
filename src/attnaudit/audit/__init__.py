"""Every attention head of a model, measured among its references: plan, units of work, rows and summary."""

from attnaudit.audit.plan import AuditPlan, plan_audit
from attnaudit.audit.run import measure
from attnaudit.audit.settings import AuditSettings

__all__ = ["AuditPlan", "AuditSettings", "measure", "plan_audit"]
