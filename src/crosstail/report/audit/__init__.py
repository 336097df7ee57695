"""A data set before training: `audit` examines it, `findings` and `advice` explain, `document` shows."""

from crosstail.report.audit.advice import CAVEAT, advice, recommend
from crosstail.report.audit.examine import audit
from crosstail.report.audit.findings import AuditFinding, findings
from crosstail.report.audit.result import Audit

__all__ = ["CAVEAT", "Audit", "AuditFinding", "advice", "audit", "findings", "recommend"]
