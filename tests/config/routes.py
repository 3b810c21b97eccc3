"""The routes that the application really has."""

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver
from ninja.operation import Operation

from apps.config.api import api


def url_patterns(resolver: URLResolver, before: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in resolver.url_patterns:
        path = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from url_patterns(pattern, path)
        else:
            yield path, pattern


def api_operations() -> dict[tuple[str, str], Operation]:
    """By method and path, as in CALLS."""
    return {
        (method, f"api/v1{path}".translate(str.maketrans("{}", "<>"))): operation
        for _, router in api._routers
        for path, view in router.path_operations.items()
        for operation in view.operations
        for method in operation.methods
    }
