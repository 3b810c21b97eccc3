"""The number of unread notifications in the bar."""

from django import template

from apps.accounts.gates import unmet_rules
from apps.accounts.models import User
from apps.inbox.selectors import MOST_COUNTED, unread_count

register = template.Library()


@register.simple_tag(takes_context=True)
def unread_notifications(context: template.Context) -> str:
    """Empty for none; "99+" beyond what is counted."""
    user = context.get("user")
    if not isinstance(user, User):
        return ""
    count = unread_count(user, unmet_rules=unmet_rules(context["request"]))
    return "" if not count else f"{MOST_COUNTED - 1}+" if count >= MOST_COUNTED else str(count)
