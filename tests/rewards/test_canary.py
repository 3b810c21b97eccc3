"""A release, in the running service: who answers what, what is compared, and how it ends."""

import asyncio
from typing import Any

import pytest

from apps.accounts.models import AuditEvent, Scope
from apps.accounts.services import create_api_key
from apps.core.errors import Conflict, DomainError
from apps.rewards.models import Endpoint, Release, ReleaseRollup, ScoreRollup
from apps.rewards.selectors import open_release, pair_statistics
from apps.rewards.services import (
    ReleaseEnded,
    ReleaseOptions,
    advance_releases,
    deploy,
    make_canary,
    promote_release,
    roll_back_release,
    rollback,
    start_release,
    switch_off,
)
from apps.rewards.serving.registry import ReleaseInfo, RevisionInfo
from apps.rewards.serving.requests import Tags
from apps.rewards.serving.routing import comparison_key, release_draw
from tests.rewards.conftest import Service, make_model, serves, wait_until
from tests.workers.engine.fakes import FakeModel
from workers.schema import parse_item

HALF = ReleaseOptions("canary", 0.5)


def messages(prompt: str, answer: str = "abc") -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}]}


def start_loaded(project, service, endpoint, how: ReleaseOptions, model: Any = None) -> Release:
    """The release of revision 2 of the endpoint, loaded."""
    made = make_model(project, service, model or FakeModel(factor=10.0))
    deploy(model=made, endpoint_name=endpoint, project=project, by=None, release_options=how)
    wait_until(lambda: service.deployed[endpoint].loaded_release is not None)
    release = open_release(Endpoint.objects.get(name=endpoint))
    assert release is not None
    return release


def ask(http, endpoint, *items: dict, **more: Any) -> dict[str, Any]:
    reply = http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": list(items), **more})
    assert reply.status_code == 200, reply.text
    document: dict[str, Any] = reply.json()
    return document


def written(service) -> None:
    """What was asked so far, and compared, is in the database."""
    wait_until(lambda: not service.state.shadow._waiting)

    async def flush() -> None:
        await service.state.usage.flush()

    wait_until(lambda: asyncio.run_coroutine_threadsafe(flush(), service.loop).result(10) is None)


def compared(service, release: Release, count: int) -> Any:
    def enough() -> bool:
        written(service)
        return pair_statistics(release).items >= count

    wait_until(enough)
    return pair_statistics(release)


RAW = {1: 0.25 + sum(map(ord, "abc")) / 1000, 2: 0.25 + sum(map(ord, "abc")) / 100}


def test_in_the_shadow_nobody_hears_it(service, project, http, endpoint) -> None:
    release = start_loaded(project, service, endpoint, ReleaseOptions("shadow"))
    for number in range(4):
        reply = ask(http, endpoint, messages(f"p{number}"), {"text": "x" * (number + 1)}, policy_version="7")
        assert (reply["version"], reply["results"][0]["raw"]) == (1, pytest.approx(RAW[1]))
        assert reply["results"][0]["flags"] == []
    pairs = compared(service, release, 8)
    assert (pairs.pairs, pairs.failed) == (8, 0)
    assert pairs.correlation("active", "candidate") == pytest.approx(1.0)
    # (raw - median) / std, of both
    said = (294, 294, 294, 294, 120, 240, 360, 480)
    means = [sum(0.25 + factor * total / 1000 for total in said) for factor in (1, 10)]
    assert pairs.mean("active") == pytest.approx((means[0] / 8 - 0.5) / 2)
    assert pairs.mean("candidate") == pytest.approx((means[1] / 8 - 0.5) / 2)
    assert ReleaseRollup.objects.get().policy_version == "7"
    assert {row.version for row in ScoreRollup.objects.all()} == {1}


def test_a_canary_is_chosen_by_run_else_group_else_prompt(service, project, http, endpoint) -> None:
    release = start_loaded(project, service, endpoint, HALF)
    by_run: dict[str, set] = {}
    for run in range(12):
        for number in range(3):
            reply = ask(http, endpoint, messages(f"prompt {number}"), {"text": "abc"}, run=f"run-{run}")
            by_run.setdefault(f"run-{run}", set()).add(reply["version"])
            raws = [entry["raw"] for entry in reply["results"]]
            assert raws == pytest.approx([RAW[reply["version"]]] * 2)
            flags = [entry["flags"] for entry in reply["results"]]
            assert flags == ([["canary"], ["canary"]] if reply["version"] == 2 else [[], []])
    assert all(len(versions) == 1 for versions in by_run.values())
    assert {version for versions in by_run.values() for version in versions} == {1, 2}
    answers = {}
    for number in range(12):
        replies = [
            ask(http, endpoint, messages(f"prompt {number}", answer))["version"] for answer in ("abc", "de")
        ]
        assert replies[0] == replies[1]
        answers[number] = replies[0]
        grouped = [
            ask(http, endpoint, messages(prompt) | {"group": f"g{number}"})["version"] for prompt in "xyz"
        ]
        assert len(set(grouped)) == 1
    assert set(answers.values()) == {1, 2}
    # One request with several prompts: each by its own, and the head names the active one.
    mixed = ask(http, endpoint, *(messages(f"prompt {number}") for number in range(12)))
    assert mixed["version"] == 1
    for number, result in enumerate(mixed["results"]):
        assert result["raw"] == pytest.approx(RAW[answers[number]])
        assert result["flags"] == (["canary"] if answers[number] == 2 else [])
    assert ask(http, endpoint, {"text": "abc"})["version"] == 1  # names no prompt: stays where it is
    pairs = compared(service, release, 36)
    assert pairs.failed == 0
    assert pairs.correlation("active", "candidate") == pytest.approx(1.0)
    counted = {row.version: 0 for row in ScoreRollup.objects.all()}
    assert set(counted) == {1, 2}


def test_what_is_compared_in_one_request_is_of_one_version(service, project, http, endpoint) -> None:
    start_loaded(project, service, endpoint, HALF)
    for number in range(8):
        both = [messages(f"a {number}"), messages(f"b {number}")]
        reply = http.post(f"/api/v1/rewards/{endpoint}/compare", json={"inputs": both}).json()
        assert reply["probability"] == pytest.approx(0.5)
        ranked = http.post(f"/api/v1/rewards/{endpoint}/rank", json={"inputs": both}).json()
        assert ranked["version"] == reply["version"]
        assert len(set(ranked["rewards"])) == 1


def test_a_version_can_be_asked_for(service, project, http, endpoint) -> None:
    start_loaded(project, service, endpoint, ReleaseOptions("shadow"))
    for number in (1, 2):
        reply = ask(http, endpoint, {"text": "abc"}, version=number)
        assert (reply["version"], reply["results"][0]["raw"]) == (number, pytest.approx(RAW[number]))
    refused = http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": [{"text": "a"}], "version": 3})
    assert (refused.status_code, refused.json()["active"]) == (409, 1)


class Picky(FakeModel):
    """Cannot score what has an x."""

    def score(self, batch: Any, *, cache: Any, criteria: Any = ()) -> Any:
        if any(ord("x") in step for entry in batch for step in entry.steps):
            raise ValueError("no x, please")
        return super().score(batch, cache=cache, criteria=criteria)


def test_a_canary_that_fails_costs_its_caller_nothing(service, project, http, endpoint) -> None:
    release = start_loaded(project, service, endpoint, ReleaseOptions("canary", 1.0), Picky(factor=10.0))
    reply = ask(http, endpoint, messages("p", "abc"), messages("q", "x"))
    assert [result["flags"] for result in reply["results"]] == [[], []]
    assert (reply["version"], reply["results"][0]["raw"]) == (1, pytest.approx(RAW[1]))
    good = ask(http, endpoint, messages("p", "abc"))
    assert (good["version"], good["results"][0]["flags"]) == (2, ["canary"])
    pairs = compared(service, release, 3)
    assert (pairs.pairs, pairs.failed) == (2, 1)


def test_errors_of_items_keep_their_places(service, project, http, endpoint) -> None:
    start_loaded(project, service, endpoint, HALF)
    items = [messages(f"prompt {number}") for number in range(6)] + [messages("bad", "refused")]
    refused = http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": items})
    assert (refused.status_code, refused.json()["pointer"]) == (422, "/inputs/6")


def test_promotion_moves_what_is_loaded(service, project, http, endpoint) -> None:
    release = start_loaded(project, service, endpoint, ReleaseOptions("canary", 0.1))
    loaded = list(service.loaded)
    revision = promote_release(release=release, by=None, reason="It held.")
    assert revision.number == 2
    wait_until(lambda: serves(service, endpoint, 2))
    assert service.loaded == loaded
    assert ask(http, endpoint, {"text": "abc"})["version"] == 2
    assert service.deployed[endpoint].loaded_release is None
    with pytest.raises(ReleaseEnded):
        roll_back_release(release=release, by=None, reason="late")
    described = http.get(f"/api/v1/rewards/{endpoint}/").json()
    assert (described["version"], described["release"], described["trial"]) == (2, None, None)


def test_withdrawal_leaves_the_active_one(service, project, http, endpoint) -> None:
    release = start_loaded(project, service, endpoint, ReleaseOptions("canary", 1.0))
    assert ask(http, endpoint, messages("p"))["version"] == 2
    described = http.get(f"/api/v1/rewards/{endpoint}/").json()["release"]
    assert described == {"version": 2, "wanted": 2, "stage": "canary", "share": 1.0, "failure": None}
    roll_back_release(release=release, by=None, reason="no good")
    wait_until(lambda: service.deployed[endpoint].loaded_release is None)
    assert ask(http, endpoint, messages("p"))["version"] == 1
    wait_until(lambda: len(service.state.deployments._shared) == 1)


def test_one_that_cannot_be_loaded_says_so_and_disturbs_nobody(service, project, http, endpoint) -> None:
    made = make_model(project, service)
    deploy(model=made, endpoint_name=endpoint, project=project, by=None, release_options=HALF)
    slot = service.deployed[endpoint].candidate
    wait_until(lambda: slot.failure is not None)
    assert ask(http, endpoint, messages("p"))["version"] == 1
    described = http.get(f"/api/v1/rewards/{endpoint}/").json()
    assert described["release"]["version"] is None
    assert described["release"]["failure"]["version"] == 2
    assert described["trial"] == described["release"]
    assert described["failure"] is None
    release = open_release(Endpoint.objects.get(name=endpoint))
    Release.objects.update(automatic=True)
    ask(http, endpoint, *(messages(f"p{number}") for number in range(30)))
    assert compared(service, release, 31).failed == 31
    advance_releases()
    release.refresh_from_db()
    assert release.stage == "withdrawn" and "could not be scored is 100.0 %" in release.reason


def test_a_request_sent_again_is_counted_once_however_it_is_split(service, project, http, endpoint) -> None:
    start_loaded(project, service, endpoint, HALF)
    body = {"inputs": [messages(f"prompt {number}") for number in range(12)]}
    for _ in range(2):
        headers = {"Idempotency-Key": "one"}
        assert http.post(f"/api/v1/rewards/{endpoint}/score", json=body, headers=headers).status_code == 200
        written(service)
    rows = ScoreRollup.objects.all()
    assert {row.version: (row.requests, row.repeated) for row in rows} == {1: (1, 1), 2: (1, 1)}
    assert sum(row.items for row in rows) == 12


def test_rules_take_a_good_one_from_shadow_to_promotion(service, project, http, endpoint) -> None:
    """And the trainer's client sees no error on the way. Limits so wide that some 30 items show that they are met."""
    rules = {"pairs": 30, "failed": 0.5, "uncertain": 0.9, "out_of_distribution": 0.9, "length": 1.0}
    release = start_loaded(project, service, endpoint, ReleaseOptions("shadow", 0.0, rules, automatic=True))

    def some(run: str) -> None:
        for number in range(10):
            ask(
                http,
                endpoint,
                *(messages(f"p{number}", "abcdefgh"[: 1 + place]) for place in range(4)),
                run=run,
            )

    some("a")
    advance_releases()
    compared(service, release, 30)
    advance_releases()
    release.refresh_from_db()
    assert (release.stage, release.share) == ("canary", 0.1)
    assert "met every rule" in release.reason
    wait_until(lambda: service.deployed[endpoint].loaded_release[0].share == 0.1)
    assert pair_statistics(release).items == 0  # a stage begins again
    some("b")
    compared(service, release, 30)
    advance_releases()
    release.refresh_from_db()
    assert (release.stage, release.endpoint.active.number) == ("promoted", 2)
    assert release.ended_at is not None
    wait_until(lambda: serves(service, endpoint, 2))
    verbs = (
        AuditEvent.objects.filter(verb__startswith="release.").order_by("pk").values_list("verb", flat=True)
    )
    assert list(verbs) == ["release.started", "release.canary", "release.promoted"]


def test_rules_withdraw_a_canary_that_is_worse(service, project, http, endpoint) -> None:
    worse = FakeModel(spread=5.0)  # its heads disagree about everything
    rules = {"pairs": 30}
    release = start_loaded(
        project, service, endpoint, ReleaseOptions("canary", 0.5, rules, automatic=True), worse
    )
    for number in range(12):
        ask(http, endpoint, *(messages(f"p{number}", "abcdefgh"[: 1 + place]) for place in range(4)))
    compared(service, release, 30)
    advance_releases()
    release.refresh_from_db()
    assert release.stage == "withdrawn"
    assert release.reason.startswith("The uncertain share is 100.0 %, and 0.0 % for the active revision")
    wait_until(lambda: service.deployed[endpoint].loaded_release is None)
    assert ask(http, endpoint, messages("p0"))["version"] == 1


def test_people_decide_where_they_said_so(service, project, http, endpoint) -> None:
    release = start_loaded(project, service, endpoint, ReleaseOptions("canary", 1.0, {"pairs": 30}))
    ask(http, endpoint, *(messages("p", "ab" * (1 + number)) for number in range(16)))
    ask(http, endpoint, *(messages("q", "cd" * (1 + number)) for number in range(16)))
    compared(service, release, 30)
    advance_releases()
    release.refresh_from_db()
    assert release.is_open and release.stage == "canary"


def test_one_release_at_a_time(service, project, endpoint) -> None:
    release = start_loaded(project, service, endpoint, ReleaseOptions("shadow"))
    with pytest.raises(Conflict, match="A release of revision 2 is open"):
        start_release(revision=release.revision, release_options=ReleaseOptions(), by=None)
    row = Endpoint.objects.get(name=endpoint)
    make_canary(release=release, share=0.3, by=None)
    # What answers changes: the comparison is over.
    made = make_model(project, service, FakeModel())
    deploy(model=made, endpoint_name=endpoint, project=project, by=None)
    release.refresh_from_db()
    assert (release.stage, release.reason) == ("withdrawn", "Revision 3 was made the active one.")
    with pytest.raises(DomainError, match="is already active on desk-reward"):
        start_release(revision=row.revisions.get(number=3), release_options=ReleaseOptions(), by=None)
    start_release(revision=row.revisions.get(number=2), release_options=HALF, by=None)
    rollback(endpoint=row, by=None, to=1)
    assert open_release(row) is None


@pytest.mark.parametrize(
    ("how", "pointer"),
    [
        (ReleaseOptions("canary", 0.0), "/share"),
        (ReleaseOptions("canary", 1.5), "/share"),
        (ReleaseOptions("promoted"), "/stage"),
    ],
)
def test_invalid_release_options(project, how, pointer) -> None:
    service = Service()
    deploy(model=make_model(project, service), endpoint_name="e", project=project, by=None)
    with pytest.raises(DomainError) as raised:
        deploy(
            model=make_model(project, service),
            endpoint_name="e",
            project=project,
            by=None,
            release_options=how,
        )
    assert raised.value.pointer == pointer
    assert Endpoint.objects.get().revisions.count() == 1


def test_nothing_is_tried_beside_nothing(project) -> None:
    made = make_model(project, Service())
    with pytest.raises(DomainError, match="deploy it without a stage"):
        deploy(model=made, endpoint_name="e", project=project, by=None, release_options=HALF)
    assert not Endpoint.objects.exists()


def test_the_off_switch_is_for_both(service, project, http, endpoint) -> None:
    start_loaded(project, service, endpoint, ReleaseOptions("canary", 1.0))
    switch_off(endpoint=Endpoint.objects.get(), reason="stop", by=None)
    wait_until(lambda: service.deployed[endpoint].info.switched_off)
    reply = http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": [messages("p")], "version": 2})
    assert reply.status_code == 503


def test_a_larger_share_keeps_what_a_smaller_one_chose() -> None:
    release = ReleaseInfo(7, "canary", 0.1, RevisionInfo(2, {}, {}))
    keys = [f"run-{number}".encode() for number in range(4000)]
    small = {key for key in keys if release_draw(release, key) < 0.1}
    large = {key for key in keys if release_draw(release, key) < 0.3}
    assert small < large
    assert 0.08 < len(small) / 4000 < 0.12
    other = ReleaseInfo(8, "canary", 0.1, RevisionInfo(3, {}, {}))
    assert small != {key for key in keys if release_draw(other, key) < 0.1}  # another release, other runs


def test_keys_of_items() -> None:
    item = parse_item(messages("hello"))
    assert comparison_key(Tags(run="r"), item) == b"run\0r"
    assert comparison_key(Tags(), parse_item(messages("hello") | {"group": "g"})) == b"group\0g"
    assert comparison_key(Tags(), item) == comparison_key(
        Tags(), parse_item(messages("hello", "another answer"))
    )
    assert comparison_key(Tags(), item) != comparison_key(Tags(), parse_item(messages("other")))
    prompt = comparison_key(Tags(), parse_item({"prompt": "hello", "response": "x"}))
    assert prompt == comparison_key(Tags(), item)
    for nameless in ({"text": "abc"}, {"input_ids": [1]}, {"prompt": "", "response": "abc"}):
        assert comparison_key(Tags(), parse_item(nameless)) is None


@pytest.mark.parametrize(("noun", "roll_back"), [("release", "/rollback"), ("trial", "/withdraw")])
def test_over_the_api(service, project, http, endpoint, client, noun, roll_back) -> None:
    """The paths under `/trial` are older names of those under `/release`."""
    secret = create_api_key(project=project, scopes=[Scope.ADMIN])[1]
    headers = {"Authorization": f"Bearer {secret}"}
    path = f"/api/v1/projects/desk/endpoints/{endpoint}"
    assert client.get(f"{path}/{noun}", headers=headers).status_code == 404
    made = make_model(project, service, FakeModel(factor=2.0))
    spec = {"components": [{"name": "m", "model": str(made)}]}
    put = client.put(
        f"{path}?stage=canary&share=0.25", spec, content_type="application/json", headers=headers
    )
    assert (put.json()["active"], put.json()["revision"]["number"]) == (1, 2)
    release = client.get(f"{path}/{noun}", headers=headers).json()
    assert (release["stage"], release["share"], release["verdict"]["says"]) == ("canary", 0.25, "waits")

    def post(verb: str, **body: Any) -> Any:
        return client.post(f"{path}/{noun}{verb}", body, content_type="application/json", headers=headers)

    assert post("/canary", share=2).status_code == 400
    assert post("/canary", share=0.5).json()["share"] == 0.5
    assert post(roll_back, reason="enough").json()["stage"] == "withdrawn"
    assert post("", revision=9).status_code == 404
    assert post("", revision=2, rules={"pairs": 1}).status_code == 422
    assert post("", revision=2, rules={"pairs": 40}).json()["rules"]["pairs"] == 40
    assert post("/promote").json()["active"] == 2
    assert post("/promote").status_code == 404
