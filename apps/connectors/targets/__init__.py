"""Peers that take scores: one module each, and the table they are found by."""

from collections.abc import Callable

from apps.connectors.sources.source import SourceContext
from apps.connectors.targets import langfuse, langsmith, mlflow, phoenix
from apps.connectors.targets.target import ScoreTarget

TARGETS: dict[str, Callable[[SourceContext], ScoreTarget]] = {
    "langfuse": langfuse.LangfuseScores,
    "phoenix": phoenix.PhoenixAnnotations,
    "langsmith": langsmith.LangSmithFeedback,
    "mlflow": mlflow.MLflowAssessments,
}
