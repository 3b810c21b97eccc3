"""Settings of the log of a guard, and what people answer about its decisions."""

from django.db import transaction
from django.utils import timezone

from apps.accounts.actors import Actor, require_person
from apps.accounts.services import record_audit
from apps.core.errors import DomainError
from apps.rewards.guard_log import MOST_CHARACTERS
from apps.rewards.models import Endpoint, GuardDecision
from apps.rewards.services import MOST_SAMPLE_DAYS, announce_change


@transaction.atomic
def keep_guard_log(
    *, endpoint: Endpoint, review_share: float, days: int, characters: int, by: Actor
) -> Endpoint:
    """People review `review_share` of the decisions that do not ask them anyway. days: of retention. characters: of the
    excerpts; 0 keeps none, and deletes those that are there."""
    for name, value, most in (
        ("review_share", review_share, 1),
        ("days", days, MOST_SAMPLE_DAYS),
        ("characters", characters, MOST_CHARACTERS),
    ):
        least = 1 if name == "days" else 0
        if not least <= value <= most:
            raise DomainError(f"must be from {least} to {most:,}.", pointer=f"/{name}")
    endpoint.guard_review_share, endpoint.guard_days, endpoint.guard_characters = (
        review_share,
        days,
        characters,
    )
    endpoint.save(update_fields=["guard_review_share", "guard_days", "guard_characters"])
    if not characters:
        endpoint.guard_decisions.update(prefix="", action="")
    data = {"review_share": review_share, "days": days, "characters": characters}
    record_audit(
        project=endpoint.project, actor=by, verb="endpoint.guard_log_changed", target=endpoint.name, data=data
    )
    announce_change(endpoint.name)
    return endpoint


@transaction.atomic
def answer_decision(*, decision: GuardDecision, is_right: bool, by: Actor, note: str = "") -> GuardDecision:
    """Whether it was right, as a person sees it. A later answer replaces it."""
    person = require_person(by, "say whether a decision was right")
    decision = GuardDecision.objects.select_for_update().get(pk=decision.pk)
    decision.is_right, decision.note = is_right, note
    decision.answered_by, decision.answered_at = person, timezone.now()
    decision.save(update_fields=["is_right", "note", "answered_by", "answered_at"])
    return decision
