"""The page of a monitor or a training: scores, J and norms over steps."""

from attnaudit.report.course.write import FIGURE, course_page, write_course_page

__all__ = ["FIGURE", "course_page", "write_course_page"]
