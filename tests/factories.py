"""Rows and clients that tests of every folder need; fixtures with plain names are in conftest.py."""

from django.test import Client

from apps.accounts.models import Membership, Project, Role, User

PASSWORD = "correct horse battery"


def make_member(project: Project, email: str, role: str) -> User:
    user = User(email=email)
    user.set_password(PASSWORD)
    user.save()
    Membership.objects.create(project=project, user=user, role=role)
    return user


def make_outsider() -> User:
    """The owner of another project."""
    project = Project.objects.create(slug="elsewhere", name="Elsewhere")
    return make_member(project, "eve@example.org", Role.OWNER)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def member_client(project: Project, role: str) -> Client:
    return signed_in(make_member(project, f"{role}@example.org", role))
