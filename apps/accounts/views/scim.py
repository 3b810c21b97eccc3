"""The SCIM service at /scim/v2/. Only with the installation's token; without one there is nothing here."""

import hmac
import json
import logging
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from apps.accounts import scim, scim_schemas
from apps.accounts.scim import ScimError
from apps.core.errors import DomainError
from apps.core.storage.storable_text import refusal

log = logging.getLogger(__name__)

CONTENT_TYPE = "application/scim+json"
_MOST_BYTES = 2**20
View = Callable[..., HttpResponse]


def scim_view(*methods: str) -> Callable[[View], View]:
    def decorate(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        def answered(request: HttpRequest, *args: Any, **more: Any) -> HttpResponse:
            try:
                _refuse_strange(request, answered)
                _authorise(request)
                _require_method(request, methods)
                return view(request, *args, **more)
            except ScimError as error:
                return _answer(error.body, error.status)
            except DomainError as error:
                told = ScimError(409, error.message, "uniqueness")
                if error.status != told.status:
                    told = ScimError(400, error.message, "invalidValue")
                return _answer(told.body, told.status)

        answered.csrf_exempt = True  # type: ignore[attr-defined]
        answered.refuses_strange_text = True  # type: ignore[attr-defined]
        return answered

    return decorate


def _refuse_strange(request: HttpRequest, view: View) -> None:
    """In the standard's own words, rather than by the middleware that does it for all other views."""
    if (found := refusal(request, view)) is not None:
        raise ScimError(*found)


@scim_view("GET", "POST")
def users(request: HttpRequest) -> HttpResponse:
    base = _base(request)
    if request.method == "POST":
        document = scim.resource(scim.create(_body(request)), base)
        answer = _answer(_selected(document, request.GET), 201)
        answer.headers["Location"] = document["meta"]["location"]
        return answer
    return _found(request.GET, base)


@scim_view("POST")
def search(request: HttpRequest) -> HttpResponse:
    """What GET asks in its address, in a body (RFC 7644, 3.4.3): addresses are kept in logs."""
    body = _body(request)
    asked = {
        name: ",".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in body.items()
        if value is not None
    }
    return _found(asked, _base(request))


def _found(asked: Mapping[str, str], base: str) -> HttpResponse:
    rows = scim.filtered(scim.users(), asked.get("filter", ""))
    start = max(_number(asked, "startIndex", 1), 1)
    count = min(max(_number(asked, "count", scim.MOST), 0), scim.MOST)
    page = rows[start - 1 : start - 1 + count]
    return _list([_selected(scim.resource(each, base), asked) for each in page], rows.count(), start)


@scim_view("GET", "PUT", "PATCH", "DELETE")
def user(request: HttpRequest, number: str) -> HttpResponse:
    identity = scim.user_of(number)
    if request.method == "DELETE":
        scim.remove(identity)
        return HttpResponse(status=204)
    if request.method == "PUT":
        identity = scim.replace(identity, _body(request))
    elif request.method == "PATCH":
        identity = scim.patch(identity, _body(request))
    return _answer(_selected(scim.resource(identity, _base(request)), request.GET))


@scim_view("GET")
def service_provider_config(request: HttpRequest) -> HttpResponse:
    return _answer(scim_schemas.service_provider_config(_base(request)))


@scim_view("GET")
def resource_types(request: HttpRequest, name: str = "") -> HttpResponse:
    return _described(scim_schemas.resource_types(_base(request)), name, request)


@scim_view("GET")
def schemas(request: HttpRequest, name: str = "") -> HttpResponse:
    return _described(scim_schemas.schemas(_base(request)), name, request)


@scim_view("GET", "POST", "PUT", "PATCH", "DELETE")
def nothing(request: HttpRequest) -> HttpResponse:
    raise ScimError(404, "There is nothing here; see /scim/v2/ResourceTypes.")


def _authorise(request: HttpRequest) -> None:
    if not settings.SCIM_TOKEN:
        raise ScimError(404, "This installation takes no SCIM: TOUCHSTONE_SCIM_TOKEN is not set.")
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    good = hmac.compare_digest(token.strip().encode("utf-8", "replace"), settings.SCIM_TOKEN.encode())
    if scheme.lower() != "bearer" or not good:
        raise ScimError(401, "Send the token of TOUCHSTONE_SCIM_TOKEN as `Authorization: Bearer TOKEN`.")


def _require_method(request: HttpRequest, methods: tuple[str, ...]) -> None:
    if request.method not in methods:
        raise ScimError(405, f"{request.path} takes {', '.join(methods)}.")


def _described(known: list[dict[str, Any]], name: str, request: HttpRequest) -> HttpResponse:
    if "filter" in request.GET:
        raise ScimError(403, "This cannot be filtered.")
    if not name:
        return _list(known, len(known), 1)
    found = next((each for each in known if each["id"] == name), None)
    if found is None:
        raise ScimError(404, f"There is no {name[:100]}.")
    return _answer(found)


def _body(request: HttpRequest) -> dict[str, Any]:
    if request.content_type not in (CONTENT_TYPE, "application/json"):
        raise ScimError(415, f"Send {CONTENT_TYPE}.")
    try:
        raw = request.body
        if len(raw) > _MOST_BYTES:
            raise ScimError(413, f"A body has at most {_MOST_BYTES // 2**20} MB.")
        found = json.loads(raw)
    except RequestDataTooBig as error:
        raise ScimError(413, str(error)) from error
    except (ValueError, RecursionError) as error:
        raise ScimError(400, "The body is not JSON.", "invalidSyntax") from error
    if not isinstance(found, dict):
        raise ScimError(400, "The body must be an object.", "invalidSyntax")
    return found


def _selected(document: dict[str, Any], asked: Mapping[str, str]) -> dict[str, Any]:
    """`attributes` and `excludedAttributes` (RFC 7644, 3.9); id and schemas are always there."""
    always = {"schemas", "id"}
    names = {
        each.strip().lower().rpartition(":")[2].partition(".")[0] for each in _listed(asked, "attributes")
    }
    without = {each.strip().lower().rpartition(":")[2] for each in _listed(asked, "excludedAttributes")}
    return {
        key: value
        for key, value in document.items()
        if key in always or ((not names or key.lower() in names) and key.lower() not in without)
    }


def _listed(asked: Mapping[str, str], name: str) -> list[str]:
    return [each for each in asked.get(name, "").split(",") if each]


def _number(asked: Mapping[str, str], name: str, default: int) -> int:
    raw = asked.get(name, "")
    if not raw:
        return default
    if not raw.removeprefix("-").isdecimal() or len(raw) > 9:
        raise ScimError(400, f"{name} must be an integer.", "invalidValue")
    return int(raw)


def _base(request: HttpRequest) -> str:
    return f"{settings.PUBLIC_URL}/scim/v2"


def _list(found: list[dict[str, Any]], total: int, start: int) -> HttpResponse:
    told = {"schemas": [scim.LIST], "totalResults": total, "startIndex": start, "itemsPerPage": len(found)}
    return _answer(told | {"Resources": found})


def _answer(document: dict[str, Any], status: int = 200) -> HttpResponse:
    answer = HttpResponse(json.dumps(document), status=status, content_type=CONTENT_TYPE)
    if status == 401:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="scim"'
    return answer
