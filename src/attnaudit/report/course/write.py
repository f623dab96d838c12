"""Write the page of one or several courses, and the charts of one as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from attnaudit._version import __version__
from attnaudit.display import told_apart
from attnaudit.records.files import write_whole
from attnaudit.report.course.chart import HEIGHT, WIDTH, Chart, chart_svg
from attnaudit.report.course.charts import charts
from attnaudit.report.course.words import findings, layer_rows, score_rows, standing
from attnaudit.report.page.templates import templates
from attnaudit.training.course import Course

#: The name of the figure in a run folder.
FIGURE = "course.svg"
#: Seconds after which a browser reads the page of a running course again.
_REFRESH = 15
_COLUMNS = 2


def write_course_page(courses: Sequence[Course], path: Path) -> list[Path]:
    """Write the page and, of one course, its charts beside it; the page is the last of the files."""
    written = []
    if len(courses) == 1 and (drawn := charts(courses[0])):
        figure = path.with_name(FIGURE)
        write_whole(figure, _figure(drawn).encode("utf-8", "replace"))
        written.append(figure)
    write_whole(path, course_page(courses))
    return [*written, path]


def course_page(courses: Sequence[Course]) -> bytes:
    """The page: no script, nothing from elsewhere, and every name escaped."""
    names = told_apart([course.name for course in courses], [str(course.path) for course in courses])
    shown = [
        {
            "name": name,
            "standing": standing(course),
            "findings": findings(course),
            "charts": [(Markup(chart_svg(chart)), chart.caption) for chart in charts(course)],
            "scores": score_rows(course),
            "layers": layer_rows(course),
            "step": course.readings[-1].step if course.readings else 0,
        }
        for name, course in zip(names, courses, strict=True)
    ]
    is_running = any(course.writer is not None for course in courses)
    text = (
        templates("attnaudit.report.course")
        .get_template("course.html")
        .render(courses=shown, refresh=_REFRESH if is_running else None, style=Markup(_style()), version=__version__)
    )
    return text.encode("utf-8", "replace")


def _figure(drawn: Sequence[Chart]) -> str:
    """All charts as one SVG file, with its style."""
    rows = -(-len(drawn) // _COLUMNS)
    width, height = WIDTH * min(len(drawn), _COLUMNS), HEIGHT * rows
    placed = [
        chart_svg(chart, x=WIDTH * (place % _COLUMNS), y=HEIGHT * (place // _COLUMNS))
        for place, chart in enumerate(drawn)
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    paper = '<rect class="paper" width="100%" height="100%"/>'
    return "\n".join([head, f"<style>{_style()}</style>", paper, *placed, "</svg>\n"])


def _style() -> str:
    return files("attnaudit.report.course").joinpath("parts", "course.css").read_text(encoding="utf-8")
