"""Charts as tables, and time axes that keep their gaps."""

from datetime import UTC, datetime, timedelta

from django.template import Context, Template

from apps.core.charts import MAX_TABLE_ROWS, break_gaps, chart_table, palette_colour

CURVES = {
    "kind": "line",
    "x": {"name": "training step"},
    "y": {"name": "accuracy", "share": True},
    "series": [
        {"name": "run 1", "points": [[1, 0.5], [3, 0.723]], "intervals": [[3, 0.6, 0.8]], "counts": [8, 9]},
        {"name": "run 2", "points": [[2, None], [3, 0.4]]},
    ],
}


def test_a_row_for_each_step_with_intervals_and_counts() -> None:
    table = chart_table(CURVES)
    assert table.columns == ["training step", "run 1", "run 2"]
    assert table.rows == [
        ["1", "50.0 %, n 8", ""],
        ["3", "72.3 % [60.0 %, 80.0 %], n 9", "40.0 %"],
    ]


def test_categories_and_points_are_listed_by_name() -> None:
    bars = {
        "kind": "bar",
        "x": {"name": "hour", "labels": ["01:00", "02:00"]},
        "y": {"name": "requests", "count": True},
        "series": [{"name": "answered", "points": [1200, 0]}],
    }
    assert chart_table(bars).rows == [["01:00", "1,200"], ["02:00", "0"]]
    points = {
        "kind": "scatter",
        "x": {"name": "annotations"},
        "y": {"name": "time", "unit": "s"},
        "series": [{"name": "ann", "points": [{"name": "<b>", "value": [3, -1.5]}]}],
    }
    table = chart_table(points)
    assert (table.columns[2], table.rows) == ("time (s)", [["ann: <b>", "3", "\N{MINUS SIGN}1.500"]])


def test_a_long_table_is_cut_and_its_rest_counted() -> None:
    series = [{"name": "loss", "points": [[step, 0.5] for step in range(MAX_TABLE_ROWS + 7)]}]
    table = chart_table(CURVES | {"series": series})
    assert (len(table.rows), table.hidden) == (MAX_TABLE_ROWS, 7)


def test_a_missing_reading_is_a_gap() -> None:
    begin = datetime(2026, 11, 1, tzinfo=UTC)
    hours = [0, 1, 2, 3, 10, 11]
    points = break_gaps((begin + timedelta(hours=hour), float(hour)) for hour in hours)
    assert [value for _, value in points] == [0, 1, 2, 3, None, 10, 11]
    assert [value for _, value in break_gaps([(begin, 1.0), (begin + timedelta(days=9), 2.0)])] == [1, 2]


def test_the_page_has_the_numbers_without_a_script() -> None:
    page = Template(
        "{% load charts %}{% chart spec 'accuracy' 'It rises.' size='is-small' %}{% swatch 9 %}"
    ).render(Context({"spec": CURVES | {"n": "n = 9 <tasks>"}}))
    assert 'id="accuracy" data-chart="accuracy-data" role="img" aria-label="It rises."' in page
    assert "72.3 % [60.0 %, 80.0 %], n 9" in page and "n = 9 &lt;tasks&gt;" in page
    assert '<div id="accuracy-data" hidden>{&quot;kind&quot;' in page
    assert 'class="swatch is-c2"' in page and palette_colour(8) == palette_colour(0) == 1
