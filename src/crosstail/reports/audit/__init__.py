"""A data set before training: `audit` examines it, `findings` and `advice` explain, `document` shows."""

from crosstail.reports.audit.advice import CAVEAT, advice, recommend
from crosstail.reports.audit.examine import audit
from crosstail.reports.audit.findings import AuditFinding, findings
from crosstail.reports.audit.result import Audit

__all__ = ["CAVEAT", "Audit", "AuditFinding", "advice", "audit", "findings", "recommend"]
