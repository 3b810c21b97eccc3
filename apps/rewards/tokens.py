"""Short-lived tokens with which the web process and the commands speak to the reward service, signed by SECRET_KEY.

The service checks them without the database. Each is valid for one project.
"""

from django.core import signing

PREFIX = "internal."
MAX_AGE_SECONDS = 120
_SALT = "touchstone.rewards.internal"


def make_token(project: str) -> str:
    """A bearer token for the endpoints of the project with this slug."""
    return PREFIX + signing.dumps(project, salt=_SALT)


def project_of_token(token: str) -> str | None:
    """The slug a token speaks for; None if it is invalid or expired."""
    try:
        project = signing.loads(token.removeprefix(PREFIX), salt=_SALT, max_age=MAX_AGE_SECONDS)
    except signing.BadSignature:
        return None
    return project if isinstance(project, str) else None
