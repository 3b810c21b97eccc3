"""Who makes a change: a person, a key, or the command line."""

from apps.accounts.models import ApiKey, Role, User
from apps.core.errors import Forbidden

Actor = User | ApiKey | None  # None: the command line


def person_of(actor: Actor) -> User | None:
    """The person who answers for it: of a key the member it belongs to, None for one of a service account."""
    return actor.owner_user if isinstance(actor, ApiKey) else actor


def require_person_for_owner(actor: Actor, role: Role) -> None:
    """Owners are made by a person or at the command line: a key that could make one could decide in a person's place.
    Raises Forbidden."""
    if role == Role.OWNER and actor is not None:
        require_person(actor, "make someone an owner")


def require_person(actor: Actor, action: str) -> User:
    """The person who decides: every service whose decision is a person's asks here, whoever calls it.

    action: what they do, such as "accept a draft". Raises Forbidden for a service account, whose key may be a program's
    or a language model's.
    """
    person = person_of(actor)
    if person is None:
        raise Forbidden(
            f"Only a person may {action}, not a service account. Do it on its page, or with a member's key."
        )
    return person
