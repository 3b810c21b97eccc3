"""The scopes of an operation, for the OpenAPI document and docs/api.md:

    @router.get("/projects/{slug}/runs", openapi_extra=needs(Scope.TRAIN))

The operation itself asks for them (`project_of_key`); tests/config/test_access.py holds both against each other.
"""

from typing import Any

SCOPES = "x-touchstone-scopes"


def needs(*scopes: str) -> dict[str, Any]:
    """A key with one of `scopes`; any key where there are none."""
    return {SCOPES: [str(scope) for scope in scopes]}
