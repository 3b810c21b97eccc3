"""The one gate: a stranger gets 404, a member without the role 403, a key without the scope 403."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from apps.accounts.gates import project_refusal
from apps.accounts.models import ApiKey, Membership, Project, Role, Scope, User
from apps.core.errors import Conflict, Forbidden, NotFound

P = ParamSpec("P")


SEEN_AS_ANNOTATOR = "seen_as_annotator"  # in the session: slugs of projects the user views as an annotator


class ProjectRequest(HttpRequest):
    """What a project view is given: a logged-in user and their membership."""

    user: User
    membership: Membership
    sees_as_annotator: bool


def membership_for(user: User, slug: str) -> Membership:
    """The user's membership of the project. Raises Http404 for strangers."""
    membership = (
        Membership.objects.select_related("project").filter(project__slug=slug, user_id=user.pk).first()
    )
    if membership is None:
        raise Http404("There is no such project.")
    return membership


def sees_models(membership: Membership) -> bool:
    """Whether figures of models are shown to this member: to researchers, and below them where the project allows."""
    return Role(membership.role).includes(Role.RESEARCHER) or membership.project.annotators_see_models


def project_view(
    role: Role = Role.ANNOTATOR, *, really: bool = False, shows_models: bool = False, in_archive: bool = False
) -> Callable[
    [Callable[Concatenate[ProjectRequest, Project, P], HttpResponseBase]], Callable[..., HttpResponseBase]
]:
    """Turn `view(request, project, ...)` into one that takes `slug` and lets only members with `role` in.

    The request carries `membership`; its role is annotator while the user views the project as one, unless `really`.
    shows_models: what `sees_models` refuses is refused, whatever `role` allows. in_archive: whether the view may change
    something in an archived project.
    """

    def decorate(
        view: Callable[Concatenate[ProjectRequest, Project, P], HttpResponseBase],
    ) -> Callable[..., HttpResponseBase]:
        @wraps(view)
        def gated(request: Any, slug: str, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return _to_login(request)
            request.membership = membership_for(request.user, slug)
            _require_role(request.membership, role)
            if (refusal := project_refusal(request, request.membership.project)) is not None:
                return refusal
            if not in_archive:
                require_open(request, request.membership.project)
            if not really and slug in request.session.get(SEEN_AS_ANNOTATOR, ()):
                _as_annotator(request, role)
            if shows_models and not sees_models(request.membership):
                raise PermissionDenied("This project shows figures of models to researchers only.")
            return view(request, request.membership.project, *args, **kwargs)

        return gated

    return decorate


def require_open(request: HttpRequest, project: Project) -> None:
    """Raises Conflict for a request that would change something in an archived project."""
    if project.archived_at is not None and request.method not in ("GET", "HEAD", "OPTIONS"):
        raise Conflict(
            f"The project {project.slug} is archived, so nothing in it can be changed. An owner can open it again in "
            "Settings, Project data."
        )


def _require_role(membership: Membership, role: Role) -> None:
    """Raises PermissionDenied below `role`."""
    if not Role(membership.role).includes(role):
        raise PermissionDenied(
            f"This needs the role {role.value} in the project {membership.project.slug}; "
            f"you are {membership.role}."
        )


def _as_annotator(request: Any, role: Role) -> None:
    request.sees_as_annotator = True  # the page says so, errors too
    request.membership.role = Role.ANNOTATOR  # here only; no one saves it
    if not Role.ANNOTATOR.includes(role):
        raise PermissionDenied(
            "You look at this project as an annotator does, and this is not for annotators."
        )


def _to_login(request: Any) -> HttpResponseBase:
    """And back to the page they were on: a form that was being sent is found there again, from its draft."""
    if request.htmx:
        back = urlsplit(request.htmx.current_url_abs_path or "/")
        # As a whole page, where the answer would be swapped into a part of one.
        return HttpResponseClientRedirect(
            f"{reverse(settings.LOGIN_URL)}?{urlencode({'next': back.geturl()})}"
        )
    if request.method in ("GET", "HEAD"):
        return redirect_to_login(request.get_full_path())
    referer = urlsplit(request.headers.get("Referer", ""))
    return redirect_to_login(referer.path if referer.netloc == request.get_host() else "/")


def project_of_key(key: ApiKey, slug: str, *scopes: Scope) -> Project:
    """The project `slug`, if the key is of it and holds one of `scopes`; any key will do where there are none.

    Raises NotFound, Forbidden.
    """
    if key.project.slug != slug:
        raise NotFound(f"There is no project {slug!r} for this key.")
    require_scope(key, *scopes)
    return key.project


def require_scope(key: ApiKey, *scopes: Scope) -> None:
    """One of them; any key will do where there are none."""
    if scopes and not set(scopes) & set(key.scopes):
        raise Forbidden(
            f"This key has the scopes {', '.join(key.scopes)}; the call needs {' or '.join(scopes)}. "
            f"An owner can make one with `create_api_key {key.project.slug} --scopes {scopes[0].value}`."
        )
