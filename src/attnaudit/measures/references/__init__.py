"""Heads whose right answer is known: without them no measure says anything."""

from attnaudit.measures.references.base import (
    PrimalReferenceInput,
    Reference,
    ReferenceInput,
    Role,
    generator_for,
)
from attnaudit.measures.references.registry import REFERENCES

__all__ = ["REFERENCES", "PrimalReferenceInput", "Reference", "ReferenceInput", "Role", "generator_for"]
