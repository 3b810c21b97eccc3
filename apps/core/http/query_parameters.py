"""Query parameters that an operation does not have are refused: a misspelt filter would list everything.

    api.add_decorator(refuse_unknown_parameters, mode="operation")

It runs after the key and the parameters were read, and before the operation does anything.
"""

from collections.abc import Callable, Collection
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja.operation import Operation

from apps.core.http.parameter_names import LONGEST_NAME, unknown_parameter_message
from apps.core.http.problems import problem


def refuse_unknown_parameters(operation: Callable[..., Any]) -> Callable[..., Any]:
    known = query_parameters(operation._ninja_operation)  # type: ignore[attr-defined]

    @wraps(operation)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        unknown = next((name for name in request.GET if name not in known), None)
        return operation(request, *args, **kwargs) if unknown is None else _refusal(unknown, known)

    return checked


def query_parameters(operation: Operation) -> list[str]:
    """Names of the operation's query parameters, in its order."""
    return [
        name
        for model in operation.models
        if model.__ninja_param_source__ == "query"
        for name in model.__ninja_flatten_map__
    ]


def _refusal(name: str, known: Collection[str]) -> HttpResponse:
    detail = unknown_parameter_message(name, known)
    error = {"detail": detail, "parameter": name[:LONGEST_NAME]}
    return problem(422, detail, parameter=error["parameter"], errors=[error])
