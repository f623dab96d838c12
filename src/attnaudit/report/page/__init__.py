"""`report.html`: one self-contained file that opens from disk, fits into an email and prints well."""

from attnaudit.report.page.write import FILE, page, write_page

__all__ = ["FILE", "page", "write_page"]
