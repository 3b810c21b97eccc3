"""Whether a revision may serve: where a check of a new model failed, only with a reason."""

from apps.core.errors import DomainError
from apps.rewards.models import EndpointRevision
from apps.training.deploy_checks import failed_checks, model_report


def require_reason(revision: EndpointRevision, reason: str) -> None:
    """Keep why it may serve although a check of a model failed that the active revision does not serve already.

    Raises DomainError where there is no reason, now or from before. Without failed checks, a reason is kept as a note.
    """
    if reason.strip():
        revision.reason = reason.strip()
        revision.save(update_fields=["reason"])
        return
    failed = failed_model_checks(revision)
    if failed and not revision.reason:
        raise DomainError(
            f"{' '.join(failed)} State the reason why it should serve all the same; it is kept with the revision and "
            "in the audit trail.",
            pointer="/reason",
            status=422,
        )


def failed_model_checks(revision: EndpointRevision) -> list[str]:
    """Of its models that the active revision does not serve, each with the model's name."""
    active = revision.endpoint.active
    served = set() if active is None else set(active.uses.values_list("model", flat=True))
    new = revision.reward_models.exclude(pk__in=served)
    rows = new.select_related("project", "training_run")
    return [f"{model}: {sentence}" for model in rows for sentence in failed_checks(model_report(model))]
