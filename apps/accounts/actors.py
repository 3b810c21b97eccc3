"""Who makes a change: a person, a key, or the command line."""

from apps.accounts.models import ApiKey, User

Actor = User | ApiKey | None  # None: the command line


def person_of(actor: Actor) -> User | None:
    """The person who answers for it: of a key the member it belongs to, None for one of a service account."""
    return actor.owner_user if isinstance(actor, ApiKey) else actor
