"""What is known of the models of a revision, next to the model that is served now."""

from apps.rewards.models import Endpoint, EndpointRevision
from apps.training.deploy_checks import ModelEvidence, model_evidence
from apps.training.models import RewardModel


def revision_evidence(revision: EndpointRevision) -> list[ModelEvidence]:
    """Of each of its models, next to the one that the active revision serves where it serves one."""
    models = revision.reward_models.select_related("project", "training_run__dataset_version__project")
    return [deploy_evidence(model, revision.endpoint) for model in models]


def deploy_evidence(model: RewardModel, endpoint: Endpoint | None) -> ModelEvidence:
    served = served_models(endpoint)
    active = endpoint.active if endpoint is not None else None
    return model_evidence(
        model,
        other=served[0] if len(served) == 1 else None,
        served_as=active.number if active is not None and model in served else None,
    )


def served_models(endpoint: Endpoint | None) -> list[RewardModel]:
    if endpoint is None or endpoint.active is None:
        return []
    return list(endpoint.active.reward_models.select_related("project", "training_run"))
