"""The table of `benchmarks/stage_table.py` leaves nothing out."""

from benchmarks.stage_table import table

RUN = {
    "microseconds_per_head": {"eigen-solve": 60_000, "Gram": 39_500, "norms": 300, "checks": 200},
    "passes": {"heads": 100_000},
    "floor": {"eigen-solve": 50_000},
    "total": 100_000,
    "floor_total": 50_000,
    "total_over_floor": 2.0,
    "reference": 4_000,
    "total_over_reference": 25.0,
    "seconds_around": {"page": 1.5},
    "seconds_from_shell_to_page": 12.0,
}


def test_small_stages_are_summed_up():
    lines = list(table([RUN]))
    assert "| eigen-solve | 60.00 | 50.00 |" in lines
    assert "| 2 smaller ones | 0.50 |  |" in lines
    assert "| page, once, s | 1.50 |  |" in lines
    assert "| engine, in such problems per head | 25.0 |  |" in lines


def test_an_older_run_stands_before_a_newer_one():
    newer = {**RUN, "microseconds_per_head": {"eigen-solve": 30_000, "fused": 5_000}, "total": 35_000}
    lines = list(table([RUN, newer]))
    assert "| eigen-solve | 60.00 | 30.00 | 50.00 |" in lines
    assert "| fused | 0.00 | 5.00 |  |" in lines
    assert "| **engine** | 100.00 | 35.00 | 50.00 |" in lines
