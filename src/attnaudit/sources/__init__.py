"""Models and inputs by name."""

from attnaudit.sources.model import LoadedModel, ModelSpec, load_model, parse_model, wrap_module

__all__ = ["LoadedModel", "ModelSpec", "load_model", "parse_model", "wrap_module"]
