"""Pages are compressed where the browser takes it; files and streams are not."""

import gzip

import pytest
from django.http import FileResponse, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.test import Client, RequestFactory

from apps.accounts.models import Project, Role
from apps.core.http.compression import CompressPagesMiddleware
from benchmarks.first_paint import over_budget
from tests.factories import make_member, signed_in

pytestmark = pytest.mark.django_db  # closing a response asks for the connections
ROWS = "<tr><td>a row like all others</td></tr>" * 200


def compressed(response: HttpResponseBase, accepts: str = "gzip, br") -> HttpResponseBase:
    request = RequestFactory().get("/", headers={"Accept-Encoding": accepts})
    return CompressPagesMiddleware(lambda _: response)(request)  # type: ignore[return-value]


def test_a_page_is_less_than_a_third_of_its_length(project: Project) -> None:
    client: Client = signed_in(make_member(project, "rose@example.org", Role.RESEARCHER))
    plain = client.get(f"/p/{project.slug}/trajectories/upload/")
    sent = client.get(f"/p/{project.slug}/trajectories/upload/", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in plain.headers and sent["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in sent["Vary"]
    assert len(sent.content) < len(plain.content) / 3
    assert b"csrfmiddlewaretoken" in gzip.decompress(sent.content)


def test_equal_pages_have_different_lengths() -> None:
    lengths = {len(compressed(HttpResponse(ROWS)).content) for _ in range(30)}  # type: ignore[attr-defined]
    assert len(lengths) > 5


@pytest.mark.parametrize(
    "response",
    [
        HttpResponse(ROWS, content_type="application/json"),
        HttpResponse("short"),
        StreamingHttpResponse(iter([ROWS.encode()])),
        FileResponse(iter([b"x" * 1000]), content_type="application/zip"),
    ],
    ids=["json", "short", "stream", "file"],
)
def test_nothing_else_is_changed(response: HttpResponseBase) -> None:
    assert "Content-Encoding" not in compressed(response).headers


def test_not_where_the_browser_does_not_take_it() -> None:
    assert "Content-Encoding" not in compressed(HttpResponse(ROWS), accepts="identity").headers


def test_the_benchmark_names_what_is_over_the_budget() -> None:
    page = {"cold_ms": 299.0, "warm_ms": 90.0, "page_kb": 109.0, "chart_kb": 190.0, "chart_after_ms": 5.0}
    assert over_budget({"": page}) == []
    late = page | {"cold_ms": 301.0, "chart_kb": 201.0, "chart_after_ms": -1.0}
    assert over_budget({"": page, "x/": late}) == [
        "/x/: cold_ms is 301, the budget is 300",
        "/x/: chart_kb is 201, the budget is 200",
        "/x/: the chart library is asked for before the first paint",
    ]
