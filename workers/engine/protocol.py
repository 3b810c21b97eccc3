"""What the engine needs of a model. `workers.models.LoadedModel` is one; another backend may be, too."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from workers.schema.conditions import Condition
from workers.schema.model_score import ModelScore
from workers.schema.records import Source
from workers.text.rendered import Content

__all__ = ["Content", "ModelScore", "RenderedInput", "Scorer"]


class RenderedInput(Protocol):
    """An item made ready for the model. key: equal for items the model cannot distinguish.

    family: equal for items with a common prefix, where the model gains by having them in one batch; else empty. shared:
    how many of its tokens need no computing in a batch with `other`, of the same family.
    """

    @property
    def tokens(self) -> int: ...
    @property
    def truncated(self) -> bool: ...
    @property
    def key(self) -> bytes: ...
    @property
    def family(self) -> bytes: ...
    def shared(self, other: Any) -> int: ...


class Scorer(Protocol):
    """What the engine asks for a score.

    render and count may be called from any thread; score only from the model thread.

    compares: whether it has `render_pair(a, b)`, of which `score` is the log-odds that `a` is the better one.
    gives_reasons: whether it has `reasons(content, rescoring=)`: which words and events moved the reward; from any
    thread.
    rewrites: whether its template changes what earlier steps look like when the next one comes.
    named_sources: the sources of steps whose speakers it reads. conditioned: the conditions that it reads.
    sees_pictures: whether it reads pictures that were sent.
    warm_up_content: something it can read.
    """

    @property
    def warm_up_content(self) -> Content: ...
    @property
    def manifest(self) -> Mapping[str, Any]: ...
    @property
    def median(self) -> float: ...
    @property
    def std(self) -> float: ...
    @property
    def aggregation(self) -> str: ...
    @property
    def criteria(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def precision(self) -> str: ...
    @property
    def scores_criteria(self) -> bool: ...
    @property
    def rewrites(self) -> bool: ...
    @property
    def named_sources(self) -> Collection[Source]: ...
    @property
    def conditioned(self) -> Collection[Condition]: ...
    @property
    def sees_pictures(self) -> bool: ...
    @property
    def compares(self) -> bool: ...
    @property
    def gives_reasons(self) -> bool: ...
    def render(self, content: Content, *, session: Any = None) -> RenderedInput: ...
    def count(self, text: str) -> int: ...
    def score(
        self, batch: Sequence[Any], *, cache: Any, criteria: Sequence[str] = ()
    ) -> Sequence[ModelScore]: ...
