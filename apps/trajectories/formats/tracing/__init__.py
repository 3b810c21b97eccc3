"""Runs as tracing tools export them."""

from apps.trajectories.formats.tracing import call_logs, langfuse, langsmith, opik, otel, span_shapes, weave

FORMATS = (
    ("otel", "OpenTelemetry spans (OTLP JSON)", otel),
    (
        "otel-spans",
        "OpenTelemetry spans as lists or lines (Phoenix, MLflow, Jaeger, SDK exporters)",
        span_shapes,
    ),
    ("langfuse", "Langfuse traces and observations", langfuse),
    ("langsmith", "LangSmith runs", langsmith),
    ("weave", "Weave calls", weave),
    ("opik", "Opik traces and spans", opik),
    ("call-logs", "Logs of calls of a model (Helicone, OpenPipe)", call_logs),
)
