"""Members that a text names with an @: `@ann@example.org`, `@ann` (of her address), or `@Ann Lee`."""

from apps.accounts.models import Project, User
from workers.schema.patterns import TextPattern, quote

_JOINS = ("_", ".", "-", "@")  # before a letter or digit they go on with a word or an address


def mentioned_users(project: Project, text: str) -> list[User]:
    """In the order of their first mention, each once; ignoring case. A name that several members have names each."""
    if "@" not in text:
        return []
    folded = text.casefold()
    found: list[tuple[int, int, User]] = []
    for user in User.objects.filter(memberships__project=project, is_active=True):
        places = [
            place
            for name in _user_names(user)
            if (place := _mention_place(folded, name.casefold())) is not None
        ]
        if places:
            found.append((min(places), user.pk, user))
    return [user for *_, user in sorted(found, key=lambda entry: entry[:2])]


def without_mentions(text: str, user: User) -> str:
    """Without the names that mention the user, as of an account that is deleted."""
    for name in sorted(_user_names(user), key=len, reverse=True):
        text = TextPattern(f"(?i)@{quote(name)}").sub("@deleted", text)
    return text


def _user_names(user: User) -> set[str]:
    return {user.email, user.email.partition("@")[0], user.name} - {""}


def _mention_place(text: str, name: str) -> int | None:
    """Where `@name` stands as a word that goes on neither before nor after it."""
    wanted = f"@{name}"
    start = text.find(wanted)
    while start >= 0:
        before, after = text[max(start - 1, 0) : start], text[start + len(wanted) :]
        goes_on = after[:1].isalnum() or (after[:1] in _JOINS and after[1:2].isalnum())
        if not (before.isalnum() or before in _JOINS) and not goes_on:
            return start
        start = text.find(wanted, start + 1)
    return None
