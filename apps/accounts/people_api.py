"""Members and invitations over the JSON API: what the page People does."""

from datetime import datetime
from typing import Annotated

from django.http import HttpRequest
from django.urls import reverse
from ninja import Field, Router, Schema, Status

from apps.accounts import invitations, people, services
from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyAuth, KeyRequest
from apps.accounts.idempotency import mark_secret_answer
from apps.accounts.models import Invitation, Membership, Project, Role, Scope
from apps.core.errors import Conflict, NotFound
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, Limit, StrictBody
from apps.core.http.api_scopes import needs
from apps.core.http.document_types import choices

router = Router()
_ADMIN = needs(Scope.ADMIN)
_EMAIL = Field(max_length=254, description="an e-mail address")


RoleName = Annotated[Role, choices(Role)]


class MemberOut(Schema):
    email: str
    name: str
    role: RoleName
    active: bool = Field(description="false: the account is closed")
    joined: datetime


class MemberPage(Schema):
    items: list[MemberOut]
    next: str | None


class MemberIn(StrictBody):
    email: str = _EMAIL
    role: RoleName = Role.ANNOTATOR


class AddedMemberOut(Schema):
    """member: false where the account's address is not verified yet: an invitation was made for it instead.

    mailed: a link by which they choose a password is on its way. link: to a password, or of the invitation; shown once,
    for you to hand over.
    """

    email: str
    role: RoleName
    member: bool
    mailed: bool
    link: str | None


class RoleChange(StrictBody):
    role: RoleName


class InvitationOut(Schema):
    id: int
    role: RoleName
    email: str = Field(description="the only address it is for; empty: anyone who has the link")
    uses: int
    most_uses: int
    live: bool
    created: datetime
    expires: datetime
    revoked: datetime | None


class InvitationPage(Schema):
    items: list[InvitationOut]
    next: str | None


class InvitationIn(StrictBody):
    role: RoleName = Role.ANNOTATOR
    email: str = Field("", max_length=254, description="the only address it is for; empty: anyone")
    most_uses: int = Field(1, ge=1, le=invitations.MOST_USES)
    days: int = Field(14, ge=1, le=invitations.MOST_DAYS, description="that it is valid for")


class NewInvitationOut(InvitationOut):
    link: str = Field(description="shown once")


@router.get("/projects/{slug}/members", response=MemberPage, summary="List members", openapi_extra=_ADMIN)
def list_members(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> MemberPage:
    """Newest first."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    page, following = paginate(project.memberships.select_related("user"), cursor=cursor, limit=limit)
    return MemberPage(items=[_member_out(membership) for membership in page], next=following)


@router.post(
    "/projects/{slug}/members", response={201: AddedMemberOut}, summary="Add a member", openapi_extra=_ADMIN
)
def add_member(request: KeyRequest, slug: str, body: MemberIn) -> Status[AddedMemberOut]:
    """A person by their e-mail address; without an account, they get one and choose a password by a link."""
    mark_secret_answer(request)
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    email = services.checked_email(body.email)
    if project.memberships.filter(user__email=email).exists():
        raise Conflict(f"{email} is a member already; change the role with PATCH.", pointer="/email")
    added = people.add_person(project=project, email=email, role=body.role, by=request.auth)
    name = "accounts:account-link" if added.link else "accounts:join"
    return Status(
        201,
        AddedMemberOut(
            email=added.email,
            role=body.role,
            member=added.is_member,
            mailed=added.is_mailed,
            link=_link(request, name, added.token) if added.token else None,
        ),
    )


@router.get("/projects/{slug}/members/{email}", response=MemberOut, summary="A member", openapi_extra=_ADMIN)
def get_member(request: KeyRequest, slug: str, email: str) -> MemberOut:
    return _member_out(_member(project_of_key(request.auth, slug, Scope.ADMIN), email))


@router.patch(
    "/projects/{slug}/members/{email}",
    response=MemberOut,
    auth=KeyAuth(in_archive=True),
    summary="Change a member's role",
    openapi_extra=_ADMIN,
)
def change_member(request: KeyRequest, slug: str, email: str, body: RoleChange) -> MemberOut:
    """Their keys keep only the scopes that the role may have. The last owner stays one."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    membership = _member(project, email)
    services.set_member(project=project, user=membership.user, role=body.role, by=request.auth)
    return _member_out(_member(project, email))


@router.delete(
    "/projects/{slug}/members/{email}",
    response={204: None},
    auth=KeyAuth(in_archive=True),
    summary="Remove a member",
    openapi_extra=_ADMIN,
)
def remove_member(request: KeyRequest, slug: str, email: str) -> Status[None]:
    """Their keys of the project are revoked; their annotations stay."""
    membership = _member(project_of_key(request.auth, slug, Scope.ADMIN), email)
    services.remove_member(membership=membership, by=request.auth)
    return Status(204, None)


@router.get(
    "/projects/{slug}/invitations", response=InvitationPage, summary="List invitations", openapi_extra=_ADMIN
)
def list_invitations(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> InvitationPage:
    """Newest first, those that are over too."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    page, following = paginate(project.invitations.all(), cursor=cursor, limit=limit)
    return InvitationPage(items=[_invitation_out(invitation) for invitation in page], next=following)


@router.post(
    "/projects/{slug}/invitations",
    response={201: NewInvitationOut},
    summary="Create an invitation",
    openapi_extra=_ADMIN,
)
def create_invitation(request: KeyRequest, slug: str, body: InvitationIn) -> Status[NewInvitationOut]:
    mark_secret_answer(request)
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    invitation, token = invitations.invite(
        project=project,
        role=body.role,
        email=services.checked_email(body.email) if body.email else "",
        most_uses=body.most_uses,
        days=body.days,
        by=request.auth,
    )
    fields = _invitation_out(invitation).dict()
    return Status(201, NewInvitationOut(**fields, link=_link(request, "accounts:join", token)))


@router.delete(
    "/projects/{slug}/invitations/{int:pk}",
    response={204: None},
    auth=KeyAuth(in_archive=True),
    summary="Revoke an invitation",
    openapi_extra=_ADMIN,
)
def revoke_invitation(request: KeyRequest, slug: str, pk: int) -> Status[None]:
    """The link opens nothing from now on. Members who joined by it stay."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    invitation = project.invitations.select_related("project").filter(pk=pk).first()
    if invitation is None:
        raise NotFound(f"There is no invitation {pk} in this project.")
    invitations.revoke_invitation(invitation=invitation, by=request.auth)
    return Status(204, None)


def _member(project: Project, email: str) -> Membership:
    rows = project.memberships.select_related("user", "project")
    membership = rows.filter(user__email=email.strip().lower()).first()
    if membership is None:
        raise NotFound(f"There is no member {email!r} in this project.")
    return membership


def _link(request: HttpRequest, name: str, token: str) -> str:
    return request.build_absolute_uri(reverse(name, args=[token]))


def _member_out(membership: Membership) -> MemberOut:
    user = membership.user
    return MemberOut(
        email=user.email,
        name=user.name,
        role=Role(membership.role),
        active=user.is_active,
        joined=membership.created_at,
    )


def _invitation_out(invitation: Invitation) -> InvitationOut:
    return InvitationOut(
        id=invitation.pk,
        role=Role(invitation.role),
        email=invitation.email,
        uses=invitation.uses,
        most_uses=invitation.most_uses,
        live=invitation.is_live,
        created=invitation.created_at,
        expires=invitation.expires_at,
        revoked=invitation.revoked_at,
    )
