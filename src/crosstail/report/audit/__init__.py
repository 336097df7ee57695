"""A data set before any training: `audit` looks, `findings` and `advice` tell, `page` and `terminal` show."""

from crosstail.report.audit.advice import CAVEAT, Recommendation, advice, recommend
from crosstail.report.audit.examine import audit
from crosstail.report.audit.findings import Finding, findings
from crosstail.report.audit.result import Audit

__all__ = ["CAVEAT", "Audit", "Finding", "Recommendation", "advice", "audit", "findings", "recommend"]
