"""`attnaudit paper`: repeat a table or figure of the reproduction study, with published numbers beside ours."""

from attnaudit.cli.paper.command import paper

__all__ = ["paper"]
