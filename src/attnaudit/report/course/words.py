"""A course in words and tables: where it stands, what the last step says, and its layers."""

from __future__ import annotations

from attnaudit.display import counted, enumerated, shortened
from attnaudit.report.course.charts import SHORT, scored_inputs
from attnaudit.training.course import Course
from attnaudit.training.monitor_log import ALIGNMENT, Reading

#: Columns of the table of layers: measures of whole batches, and scores.
_MEANS = {"projection_error_mae": "J", "output_norm2": "‖h‖²", "phi_norm2_median": "‖φ(q)‖² (median)"}
#: Fewer inputs decide nothing.
_DECIDING = 8


def standing(course: Course) -> str:
    """Up to which step the page goes, and whether there will be more."""
    of = "" if course.total is None else f" of {course.total:,}"
    read = f", of which {len(course.readings)} are drawn" if len(course.readings) < len(course.parts) else ""
    measured = f"Up to step {course.last_step:,}{of}; the monitor measured {counted(len(course.parts), 'step')}{read}."
    if course.writer is not None:
        return f"{measured} Still running: process {course.writer.pid} on {course.writer.host}."
    if course.total is not None and course.last_step < course.total:
        return f"{measured} Not finished, and no process is writing: repeat its command to resume."
    return measured


def findings(course: Course) -> list[str]:
    """What the last step says, a sentence each."""
    if not course.readings:
        return ["Nothing was measured yet."]
    first, last = course.readings[0], course.readings[-1]
    said = []
    for batch in course.batches:
        score = last.batches[batch].scores.get(ALIGNMENT[0])
        if score is not None and score.score is not None:
            said.append(f"{shortened(batch, 40)} {score.score}")
    sentences = []
    if said:
        inputs = scored_inputs(course)
        weight = "" if inputs >= _DECIDING else f", too few to decide: {_DECIDING} are needed"
        sentences.append(
            f"Alignment of values with kernel PCA at step {last.step:,}: {'; '.join(said)}. 0 is chance, 1 is the "
            f"claim; from {counted(inputs, 'input')}{weight}."
        )
    elif reasons := _unscored(last):
        sentences.append(f"Alignment of values with kernel PCA has no score: {reasons}.")
    batch = course.batches[0]
    before, after = first.batches[batch].means, last.batches[batch].means
    moves = [_move(words, before.get(name), after.get(name)) for name, words in _MEANS.items()]
    if len(course.readings) > 1 and all(moves):
        sentences.append(f"From step {first.step:,} to {last.step:,}, on {shortened(batch, 40)}: {', '.join(moves)}.")
    return sentences


def _unscored(reading: Reading) -> str:
    """Why no measure has a score, as far as the rows say."""
    scores = [score for batch in reading.batches.values() for score in batch.scores.values()]
    reasons = {
        "a theorem excludes these heads": any(score.impossible for score in scores),
        "heads have fewer than 2d tokens, or keys of too low a rank": any(score.unidentifiable for score in scores),
        "planted values are no closer to the claim than chance": any(score.uninformative for score in scores),
    }
    return enumerated([reason for reason, holds in reasons.items() if holds], "and")


def _move(words: str, before: float | None, after: float | None) -> str:
    return "" if before is None or after is None else f"{words} {before:.3g} → {after:.3g}"


def score_rows(course: Course) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The batches, and for every measure its scores at the last step."""
    if not course.readings:
        return [], []
    batches = list(course.batches)
    found = [course.readings[-1].batches[batch].scores for batch in batches]
    rows = []
    for measure in SHORT:
        scores = [own.get(measure) for own in found]
        if any(score is not None and score.score is not None for score in scores):
            cells = ["–" if score is None or score.score is None else str(score.score) for score in scores]
            rows.append((f"{SHORT[measure]} ({measure})", cells))
    return batches, rows


def layer_rows(course: Course) -> tuple[list[str], list[list[str]]]:
    """Heading and rows of the table of layers at the last step."""
    if not course.readings:
        return [], []
    table = course.layers()
    names = {"batch": "batch", "layer": "layer", "heads": "heads", **_MEANS}
    names |= {f"{measure} score": f"{words}, score" for measure, words in SHORT.items()}
    columns = [name for name in names if name in table.column_names and table[name].null_count < table.num_rows]
    rows = [[_cell(row[name]) for name in columns] for row in table.to_pylist()]
    return [names[name] for name in columns], rows


def _cell(value: str | float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
