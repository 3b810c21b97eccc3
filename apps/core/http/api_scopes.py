"""The scopes of an operation, for the OpenAPI document and docs/api.md:

    @router.get("/projects/{slug}/runs", openapi_extra=needs(Scope.TRAIN))

The operation itself asks for them (`project_of_key`, `require_person`); tests/config/test_access.py holds both against
each other.
"""

from typing import Any

SCOPES = "x-touchstone-scopes"
PERSON = "x-touchstone-person"


def needs(*scopes: str, person: bool = False) -> dict[str, Any]:
    """A key with one of `scopes`; any key where there are none. person: a member's, not one of a service account."""
    return {SCOPES: [str(scope) for scope in scopes]} | ({PERSON: True} if person else {})
