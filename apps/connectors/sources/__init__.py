"""Kinds of connectors: one module each, and the table they are found by."""

from apps.connectors.sources import huggingface, inspect_logs, langfuse, langsmith, mlflow, phoenix, s3, weave
from apps.connectors.sources.source import SourceKind
from apps.core.errors import DomainError

_MODULES = (langfuse, phoenix, langsmith, mlflow, weave, inspect_logs, s3, huggingface)
KINDS: dict[str, SourceKind] = {module.KIND.name: module.KIND for module in _MODULES}


def kind_named(name: str) -> SourceKind:
    """Raises DomainError."""
    if name not in KINDS:
        raise DomainError(
            f"There is no kind of connector {name[:40]!r}; choose from {', '.join(KINDS)}.", pointer="/kind"
        )
    return KINDS[name]
