"""Runs as tracing tools export them."""

from apps.trajectories.formats.tracing import otel

FORMATS = (("otel", "OpenTelemetry GenAI spans (OTLP JSON)", otel),)
