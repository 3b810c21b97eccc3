"""`client.rubrics`: authored criteria, versioned."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import Calls, DriverT, Request, given, list_operation, operation
from touchstone_client.listings import Pages


@api_object
class Criterion(ApiObject):
    """answers: `scale`, `category` (one), `categories` (several) or `step_tags` (tags on agent steps).

    scale: lowest and highest score; None where the answers are categories. points: names of
    scores. categories: {"name", "definition"} each.
    """

    name: str
    definition: str = ""
    answers: str = "scale"
    categories: tuple[dict[str, Any], ...] = ()
    scale: tuple[float, ...] | None = (1, 5)
    points: dict[str, str] = field(default_factory=dict)
    good: str = ""
    bad: str = ""
    weight: float = 1.0
    rank: int = 1


@api_object
class Rubric(ApiObject):
    """rubric: `NAME@VERSION`. used: by a campaign or a judge, and so fixed. factors: the ranking that comparisons are
    made of, the most important first; with a minus in front, less is better."""

    rubric: str
    name: str = ""
    version: int = 1
    about: str = ""
    used: bool = False
    criteria: tuple[Criterion, ...] = ()
    factors: tuple[str, ...] = ()
    created: datetime | None = None

    def __str__(self) -> str:
        return self.rubric


class Rubrics(Calls[DriverT]):
    """Scope `ingest`, `feedback:read` or `admin` to read."""

    @operation
    def create(
        self, name: str, criteria: Iterable[Mapping[str, Any] | Criterion], *, about: str | None = None
    ) -> Request[Rubric]:
        """A rubric, or where one of this name is in use, its next version. Scope `admin`.

        criteria: {"name", "definition"?, "scale"?, "answers"?, "categories"?, "points"?, "good"?, "bad"?,
        "weight"?, "rank"?}.
        """
        written = [each.to_dict() if isinstance(each, Criterion) else dict(each) for each in criteria]
        written = [
            {key: value for key, value in each.items() if key != "scale" or value is not None}
            for each in written
        ]
        body = {"name": name, "criteria": written, **given(about=about)}
        return Request("POST", self._path("rubrics"), ObjectReader(Rubric), json=body)

    @operation
    def get(self, rubric: str | Rubric) -> Request[Rubric]:
        """One version (`NAME@VERSION`), or the newest (`NAME`)."""
        return Request("GET", self._path("rubrics", rubric), ObjectReader(Rubric))

    @operation
    def rank_factors(self, rubric: str | Rubric, factors: Sequence[str]) -> Request[Rubric]:
        """Set the ranking of factors that the generator `factors` makes comparisons of. Scope `admin`.

        factors: the most important first: names of criteria with a scale, `outcome`, `steps` (fewer are better) or
        `metadata.KEY`; with a minus in front, less is better.
        """
        path = self._path("rubrics", rubric, "factors")
        return Request("PUT", path, ObjectReader(Rubric), json={"factors": [*factors]})

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[Rubric]:
        """The newest version of each."""
        return Pages(self._path("rubrics"), ObjectReader(Rubric), page_size=page_size)
