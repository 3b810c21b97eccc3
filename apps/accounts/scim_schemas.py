"""What the SCIM service says of itself (RFC 7643, 5 to 7)."""

from typing import Any

from apps.accounts.scim import MOST, USER

_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:Schema"
_TYPE = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
_CONFIG = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"


def _attribute(name: str, says: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "multiValued": False,
        "description": says,
        "required": False,
        "caseExact": False,
        "mutability": "readWrite",
        "returned": "default",
        "uniqueness": "none",
    } | more


def service_provider_config(base: str) -> dict[str, Any]:
    scheme = {
        "type": "oauthbearertoken",
        "name": "Bearer token",
        "description": "The token of TOUCHSTONE_SCIM_TOKEN.",
        "primary": True,
    }
    return {
        "schemas": [_CONFIG],
        "patch": {"supported": True},
        "bulk": {"supported": False, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": True, "maxResults": MOST},
        "changePassword": {"supported": False},
        "sort": {"supported": False},
        "etag": {"supported": False},
        "authenticationSchemes": [scheme],
        "meta": {"resourceType": "ServiceProviderConfig", "location": f"{base}/ServiceProviderConfig"},
    }


def resource_types(base: str) -> list[dict[str, Any]]:
    meta = {"resourceType": "ResourceType", "location": f"{base}/ResourceTypes/User"}
    user = {"id": "User", "name": "User", "endpoint": "/Users", "description": "A person", "schema": USER}
    return [{"schemas": [_TYPE], **user, "meta": meta}]


def schemas(base: str) -> list[dict[str, Any]]:
    emails = _attribute(
        "emails",
        "The address; one is kept",
        "complex",
        multiValued=True,
        required=True,
        subAttributes=[
            _attribute("value", "E-mail address", required=True),
        ],
    )
    attributes = [
        _attribute("userName", "How the directory calls them", required=True, uniqueness="server"),
        _attribute("displayName", "Their name"),
        _attribute("active", "Whether they may sign in", "boolean", required=True),
        emails,
    ]
    meta = {"resourceType": "Schema", "location": f"{base}/Schemas/{USER}"}
    told = {"id": USER, "name": "User", "description": "A person", "attributes": attributes}
    return [{"schemas": [_SCHEMA], **told, "meta": meta}]
