"""`langfuse-scores`, `phoenix-annotations`: feedback on the traces that it is about, in the bodies of their APIs.

One score per line, so that a script can send as many in a request as the server takes; docs/feedback.md shows how.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from apps.accounts.models import Project
from apps.annotation.feedback.records import check_filters, iter_annotation_records
from apps.annotation.feedback.trace_scores import (
    NO_OTEL_ID,
    TraceScore,
    annotation_scores,
    langfuse_score,
    phoenix_annotation,
)


def export_langfuse(
    *, project: Project, filters: dict[str, Any], left_out: Counter[str] | None = None
) -> Iterator[str]:
    for score in _scores(project, filters, Counter() if left_out is None else left_out):
        yield json.dumps(langfuse_score(score), ensure_ascii=False) + "\n"


def export_phoenix(
    *, project: Project, filters: dict[str, Any], left_out: Counter[str] | None = None
) -> Iterator[str]:
    left_out = Counter() if left_out is None else left_out
    for score in _scores(project, filters, left_out):
        annotation = phoenix_annotation(score)
        if annotation is None:
            left_out[NO_OTEL_ID] += 1
        else:
            yield json.dumps(annotation, ensure_ascii=False) + "\n"


def _scores(project: Project, filters: dict[str, Any], left_out: Counter[str]) -> Iterator[TraceScore]:
    check_filters(filters)
    for stored in iter_annotation_records(project=project, filters=filters):
        yield from annotation_scores(stored, project=project.slug, left_out=left_out)
