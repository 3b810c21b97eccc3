"""`client.projects`, `client.members`, `client.invitations`, `client.keys`. Scope `admin`, but to read
projects and the own key."""

from datetime import datetime
from typing import ClassVar

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import (
    Calls,
    DriverT,
    Request,
    api_path,
    given,
    list_operation,
    operation,
    read_nothing,
)
from touchstone_client.listings import Pages


@api_object
class Project(ApiObject):
    slug: str
    name: str = ""
    annotators_see_models: bool = False
    require_two_factor: bool = False
    require_single_sign_on: bool = False
    created: datetime | None = None
    archived: datetime | None = None

    def __str__(self) -> str:
        return self.slug


@api_object
class ProjectDeletion(ApiObject):
    """state: queued, running or failed; once it is done there is no project to ask about."""

    project: str
    state: str = ""


@api_object
class Member(ApiObject):
    """role: annotator, reviewer, researcher or owner."""

    email: str
    name: str = ""
    role: str = ""
    active: bool = True
    joined: datetime | None = None

    def __str__(self) -> str:
        return self.email


@api_object
class AddedMember(ApiObject):
    """member: False where an invitation was made, for an account whose address is not verified.

    link: opens the invitation, or where a new account chooses its password; shown once, and not in the repr.
    """

    email: str
    role: str
    member: bool = True
    mailed: bool = False
    link: str | None = None

    HIDDEN: ClassVar[tuple[str, ...]] = ("link",)


@api_object
class Invitation(ApiObject):
    """link: only in the reply to `create`, and not in the repr."""

    id: int
    role: str
    email: str = ""
    uses: int = 0
    most_uses: int = 1
    live: bool = True
    created: datetime | None = None
    expires: datetime | None = None
    revoked: datetime | None = None
    link: str | None = None

    HIDDEN: ClassVar[tuple[str, ...]] = ("link",)


@api_object
class ApiKey(ApiObject):
    """prefix: its beginning, by which it is named; the key itself is shown where it is created, once."""

    prefix: str
    name: str = ""
    scopes: tuple[str, ...] = ()
    owner: str | None = None
    owner_kind: str | None = None
    live: bool = True
    created: datetime | None = None
    expires: datetime | None = None
    revoked: datetime | None = None


class Projects(Calls[DriverT]):
    @operation
    def get(self) -> Request[Project]:
        """The client's project. Any scope."""
        return Request("GET", self._path(), ObjectReader(Project))

    @operation
    def update(
        self, *, name: str | None = None, annotators_see_models: bool | None = None
    ) -> Request[Project]:
        """Change what is given. Scope `admin`."""
        body = given(name=name, annotators_see_models=annotators_see_models)
        return Request("PATCH", self._path(), ObjectReader(Project), json=body)

    @operation
    def archive(self) -> Request[Project]:
        """Make the project read only. Endpoints stop, campaigns and connectors are paused. Scope `admin`."""
        return Request("POST", self._path("archive"), ObjectReader(Project))

    @operation
    def restore(self) -> Request[Project]:
        """Open it again. What archiving stopped stays off until it is started. Scope `admin`."""
        return Request("POST", self._path("restore"), ObjectReader(Project))

    @operation
    def delete(self, name: str) -> Request[ProjectDeletion]:
        """Delete the project with everything in it. name: of the project, once more. Its keys, the client's too, are
        revoked at once. Scope `admin`."""
        return Request("POST", self._path("deletion"), ObjectReader(ProjectDeletion), json={"name": name})

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[Project]:
        """Those that the key may see. Any scope."""
        return Pages(api_path("projects"), ObjectReader(Project), page_size=page_size)


class Members(Calls[DriverT]):
    @operation
    def add(self, email: str, *, role: str | None = None) -> Request[AddedMember]:
        """Add a person, by default as an annotator. An account is made where there is none."""
        body = {"email": email, **given(role=role)}
        return Request("POST", self._path("members"), ObjectReader(AddedMember), json=body)

    @operation
    def get(self, email: str | Member) -> Request[Member]:
        return Request("GET", self._path("members", email), ObjectReader(Member))

    @operation
    def change_role(self, email: str | Member, role: str) -> Request[Member]:
        path = self._path("members", email)
        return Request("PATCH", path, ObjectReader(Member), json={"role": role})

    @operation
    def remove(self, email: str | Member) -> Request[None]:
        return Request("DELETE", self._path("members", email), read_nothing)

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[Member]:
        return Pages(self._path("members"), ObjectReader(Member), page_size=page_size)


class Invitations(Calls[DriverT]):
    @operation
    def create(
        self,
        *,
        role: str | None = None,
        email: str | None = None,
        most_uses: int | None = None,
        days: int | None = None,
    ) -> Request[Invitation]:
        """A link by which people join the project: for an address, or for whoever has it, up to `most_uses` times."""
        body = given(role=role, email=email, most_uses=most_uses, days=days)
        return Request("POST", self._path("invitations"), ObjectReader(Invitation), json=body)

    @operation
    def revoke(self, invitation: int) -> Request[None]:
        return Request("DELETE", self._path("invitations", invitation), read_nothing)

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[Invitation]:
        return Pages(self._path("invitations"), ObjectReader(Invitation), page_size=page_size)


class Keys(Calls[DriverT]):
    @operation
    def current(self) -> Request[ApiKey]:
        """The client's own key: its name and scopes. Any scope."""
        return Request("GET", api_path("key"), ObjectReader(ApiKey))

    @operation
    def revoke(self, prefix: str) -> Request[None]:
        return Request("DELETE", self._path("keys", prefix), read_nothing)

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[ApiKey]:
        return Pages(self._path("keys"), ObjectReader(ApiKey), page_size=page_size)
