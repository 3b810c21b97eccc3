"""A model that fails a check serves only with a reason, which is kept."""

from typing import Any

import pytest

from apps.accounts.models import AuditEvent, Project
from apps.core.errors import DomainError
from apps.rewards import services
from apps.rewards.deploy_gate import failed_model_checks
from apps.rewards.models import Endpoint
from apps.rewards.services import STANDBY, ReleaseOptions
from apps.training.deploy_checks import failed_checks, model_evidence
from apps.training.models import Evaluation, HeldOutDecisions, RewardModel
from tests.datasets.feedback import freeze, import_pairs, pair

REASON = "Only for the canary of the new tools."


def report(accuracy: float, interval: tuple[float, float], tasks: int = 40, **more: Any) -> dict[str, Any]:
    part = {"accuracy": accuracy, "interval": list(interval), "n": 80, "tasks": tasks, "baselines": {}}
    return {"preference": part, "findings": []} | more


def evaluated(project: Project, version: int, found: dict[str, Any] | None, **more: Any) -> RewardModel:
    model = RewardModel.objects.create(
        project=project, name="politeness", version=version, artifact=f"models/{version}", manifest={}
    )
    if found is not None:
        Evaluation.objects.create(model=model, source="file", report=found, **more)
    return model


def put(model: RewardModel, **more: Any) -> Any:
    return services.deploy(model=model, endpoint_name="reward", project=model.project, by=None, **more)


GOOD, CHANCE = report(0.8, (0.7, 0.9)), report(0.5, (0.4, 0.6))


@pytest.mark.parametrize(
    ("found", "count"),
    [
        (None, 0),
        (GOOD, 0),
        (CHANCE, 1),
        (report(0.55, (0.45, 0.65)), 1),
        (report(0.55, (0.1, 0.9), tasks=3), 0),  # too few for the interval to say anything
        (report(0.515, (0.505, 0.525)), 1),  # within the margin
        (GOOD | {"findings": [{"name": "leak", "sentence": "The test leaks."}]}, 1),
        (GOOD | {"findings": [{"name": "unchecked", "sentence": "Unknown."}]}, 0),
        (
            report(
                0.3,
                (0.2, 0.4),
                findings=[{"name": "worse_than_chance", "kind": "preference", "sentence": "W."}],
            ),
            1,
        ),
    ],
)
def test_what_needs_a_reason(found: dict[str, Any] | None, count: int) -> None:
    assert len(failed_checks(found)) == count


@pytest.mark.django_db
class TestReason:
    def test_a_good_or_unknown_model_needs_none(self, project: Project) -> None:
        assert put(evaluated(project, 1, GOOD)).reason == ""
        assert put(evaluated(project, 2, None)).number == 2

    def test_without_one_nothing_is_deployed(self, project: Project) -> None:
        model = evaluated(project, 1, CHANCE)
        with pytest.raises(DomainError, match=r"not above chance.*State the reason") as refused:
            put(model)
        assert (refused.value.pointer, refused.value.status) == ("/reason", 422)
        assert not Endpoint.objects.exists()

    def test_it_is_kept_with_the_revision_and_audited(self, project: Project) -> None:
        revision = put(evaluated(project, 1, CHANCE), reason=f" {REASON} ")
        revision.refresh_from_db()
        assert revision.reason == REASON
        assert AuditEvent.objects.get(verb="endpoint.deployed").data["reason"] == REASON
        # Another transform of the same model is no new decision.
        again = put(RewardModel.objects.get(), transforms=[{"type": "clip", "eta": 0}])
        assert (again.number, again.reason, failed_model_checks(again)) == (2, "", [])

    def test_a_shadow_needs_it_when_it_is_to_answer(self, project: Project) -> None:
        put(evaluated(project, 1, GOOD))
        model = evaluated(project, 2, CHANCE)
        revision = put(model, release_options=ReleaseOptions("shadow"))
        release = revision.releases.get()
        for change in (
            lambda: services.promote_release(release=release, by=None, reason="By rose."),
            lambda: services.make_canary(release=release, share=0.1, by=None),
            lambda: services.set_standby(endpoint=revision.endpoint, revision=revision, by=None),
            lambda: services.rollback(endpoint=revision.endpoint, to=2, by=None),
        ):
            with pytest.raises(DomainError, match="State the reason"):
                change()
        services.make_canary(release=release, share=0.1, by=None, deploy_reason=REASON)
        services.promote_release(release=release, by=None)
        revision.refresh_from_db()
        assert revision.reason == REASON
        assert AuditEvent.objects.get(verb="release.promoted").data["deploy_reason"] == REASON

    @pytest.mark.parametrize(
        "options",
        [ReleaseOptions("shadow", automatic=True), ReleaseOptions("canary", 0.1), ReleaseOptions(STANDBY)],
    )
    def test_what_may_answer_without_a_person_needs_it_at_once(
        self, project: Project, options: ReleaseOptions
    ) -> None:
        put(evaluated(project, 1, GOOD))
        model = evaluated(project, 2, CHANCE)
        with pytest.raises(DomainError, match="State the reason"):
            put(model, release_options=options)
        assert put(model, release_options=options, reason=REASON).reason == REASON


@pytest.mark.django_db
def test_the_page_shows_what_is_known_and_asks(project: Project, researcher_client: Any) -> None:
    put(evaluated(project, 1, GOOD))
    model = evaluated(
        project, 2, CHANCE | {"annotators": {"leave_one_out": 0.81, "interval": [0.7, 0.9], "n": 30}}
    )
    page = f"/p/{project.slug}/endpoints/deploy/"
    text = researcher_client.get(page, {"model": model.pk, "endpoint": "reward"}).content.decode()
    assert "50.0 %" in text and "81.0 %" in text and "not above chance" in text and 'name="reason"' in text
    assert "were not evaluated on the same dataset version" in text
    body = {"model": model.pk, "endpoint": "reward", "stage": "", "transform": "", "amount": ""}
    refused = researcher_client.post(page, body)
    assert "State the reason" in refused.content.decode() and refused.status_code == 200
    assert researcher_client.post(page, body | {"reason": REASON}).status_code == 302
    assert Endpoint.objects.get().active.reason == REASON


@pytest.mark.django_db
def test_the_difference_to_the_active_model_is_paired(project: Project) -> None:
    import_pairs(project, [pair(f"order {number}") for number in range(10)])
    dataset_version = freeze(project)
    models = [evaluated(project, version, GOOD, dataset_version=dataset_version) for version in (1, 2)]
    for model, right in zip(models, (8, 12), strict=True):
        rows = [[f"a{n}", f"b{n}", f"task {n}", float(n < right), 2] for n in range(20)]
        HeldOutDecisions.objects.create(evaluation=model.evaluations.get(), rows=rows)
    difference = model_evidence(models[1], other=models[0]).difference
    assert difference is not None
    assert (difference.difference, difference.n, difference.tasks) == (pytest.approx(0.2), 40, 20)
    assert (difference.won, difference.lost) == (8, 0)
    assert difference.interval == pytest.approx((0.0201, 0.3799), abs=1e-3)
    assert model_evidence(models[0], other=models[0]).difference is None


@pytest.mark.django_db
def test_the_page_shows_the_strongest_baseline_and_what_is_not_beaten(
    project: Project, researcher_client: Any
) -> None:
    found = report(0.755, (0.7, 0.8))
    found["preference"] |= {
        "baselines": {
            "structure": {"accuracy": 0.715, "difference": 0.04, "interval": [0.01, 0.08]},
            "ngrams": {"accuracy": 0.723, "difference": 0.032, "interval": [-0.035, 0.1]},
        },
        "best_baseline": {
            "name": "structure",
            "value": 0.7,
            "n": 400,
            "tasks": 40,
            "values": {"structure": 0.7, "ngrams": 0.6},
        },
    }
    model = evaluated(project, 1, found)
    page = f"/p/{project.slug}/endpoints/deploy/"
    text = researcher_client.get(page, {"model": model.pk, "endpoint": "reward"}).content.decode()
    assert text.index("Strongest baseline") < text.index("n-gram regression: 72.3 %")
    assert text.index("n-gram regression: 72.3 %") < text.index("Baseline chosen in training")
    assert "The model is not shown to beat “n-gram regression” (72.3 %)." in text
    assert "serves the same model" not in text
    put(model)
    text = researcher_client.get(page, {"model": model.pk, "endpoint": "reward"}).content.decode()
    assert "none: revision 1, which is active, serves the same model" in text
