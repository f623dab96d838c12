"""Audits of many models side by side: a page, a card for each, and their numbers as CSV and Parquet."""

from attnaudit.report.atlas.audits import AtlasAudit, AtlasFailure
from attnaudit.report.atlas.card import CARD, read_card, write_card
from attnaudit.report.atlas.write import INDEX, write_atlas

__all__ = ["CARD", "INDEX", "AtlasAudit", "AtlasFailure", "read_card", "write_atlas", "write_card"]
