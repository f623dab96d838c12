"""`report.html`: one self-contained file that opens from disk, travels by mail and prints well."""

from attnaudit.report.page.write import FILE, page, write_page

__all__ = ["FILE", "page", "write_page"]
