"""Demonstrations: marked on the page of a trajectory, found by the filter, frozen, and exported for fine-tuning."""

import io
import json
from collections import Counter

from django.test import Client

from apps.accounts.models import Project, Role, Scope, ServiceAccount, User
from apps.accounts.services import create_api_key, create_project
from apps.annotation.feedback.exports import EXPORTS
from apps.annotation.feedback.records import feedback_records
from apps.annotation.feedback.services import import_feedback
from apps.annotation.feedback_types.demonstration import DEMONSTRATION
from apps.annotation.models import Annotation, Demonstration, Item
from apps.annotation.presentation import PresentedItem
from apps.datasets.exports.accepted import Acceptance
from apps.datasets.exports.formats import EXPORTS as DATASET_EXPORTS
from apps.trajectories import services
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.models import Trajectory
from tests.datasets.feedback import freeze
from tests.factories import make_member
from tests.trajectories.conftest import lines, record

BUTTON, UNDO = "Mark as demonstration</button>", "Remove my demonstration mark</button>"


def bring(project: Project) -> Trajectory:
    services.import_trajectories(project=project, stream=io.BytesIO(lines(record())), by=None)
    return Trajectory.objects.get()


def test_a_mark_is_made_taken_back_and_made_again(project: Project, researcher: User, client: Client) -> None:
    trajectory = bring(project)
    page = f"/p/desk/trajectories/{trajectory.pk}/"
    url = f"/p/desk/campaigns/demonstrations/{trajectory.pk}/"
    other = make_member(project, "other@example.org", Role.RESEARCHER)
    client.force_login(researcher)
    assert BUTTON in client.get(page).content.decode()

    def press(mark: str) -> str:
        return client.post(url, {"mark": mark}, headers={"HX-Request": "true"}).content.decode()

    for revision in (1, 2):
        answer = press("yes")
        assert UNDO in answer and "Marked by you" in answer and "<html" not in answer
        press("yes")  # again changes nothing
        (found,) = feedback_records(project=project)
        assert (found.annotator, found.origin, found.demonstration) == (researcher.email, "person", True)
        assert filter_trajectories(project, "demonstration=yes").count() == 1
        assert Annotation.objects.count() == revision
        assert BUTTON in press("no")
        assert list(feedback_records(project=project)) == []
        assert filter_trajectories(project, "demonstration=no").count() == 1
        assert (Item.objects.get().completed_count, Item.objects.get().claimed_count) == (0, 0)
    press("yes")
    client.force_login(other)
    shown = client.get(page).content.decode()
    assert BUTTON in shown and f"Marked by {researcher.email}" in shown
    assert client.post(url, {"mark": "yes"}).headers["Location"] == page
    assert Item.objects.get().completed_count == 2
    assert client.post(url, {"mark": "maybe"}).status_code == 400


def test_answers_on_the_annotation_page_there_and_back() -> None:
    shown = PresentedItem([Trajectory(pk=1), Trajectory(pk=2)], (1, 0))
    fields = {"demonstration-left": "yes", "demonstration-right": "no"}
    rows = DEMONSTRATION.parse(fields, shown)
    assert [(row.trajectory_id, row.demonstration) for row in rows] == [(2, True), (1, False)]
    assert DEMONSTRATION.form_values(rows, shown) == fields
    assert DEMONSTRATION.summary(rows, shown) == "A: a demonstration; B: not a demonstration"
    assert [question.value for question in DEMONSTRATION.questions(fields, shown)] == ["yes", "no"]


def test_rows_for_fine_tuning_are_demonstrations_and_come_back(project: Project) -> None:
    rows = [
        {"prompt": "Say hi.", "completion": "Hi."},
        {"messages": [{"role": "user", "content": "Say bye."}, {"role": "assistant", "content": "Bye."}]},
    ]

    def load(into: Project, text: str) -> int:
        return import_feedback(
            project=into, stream=io.BytesIO(text.encode()), format="trl-sft", by=None
        ).created

    assert load(project, "\n".join(map(json.dumps, rows))) == 2
    made = DEMONSTRATION.all_rows().first()
    assert isinstance(made, Demonstration) and str(made) == "a demonstration"
    version = freeze(project, name="shown")
    assert version.records == {"demonstration": 2}
    for by in ("auto", "demonstration"):
        left_out: Counter[str] = Counter()
        text = "".join(DATASET_EXPORTS["trl-sft"](version, None, left_out, Acceptance.of(by, None, None)))
        written = [json.loads(line) for line in text.splitlines()]
        assert {row["completion"][0]["content"] for row in written} == {"Hi.", "Bye."}
        assert {row["origin"] for row in written} == {"imported"} and not +left_out
    assert load(project, text) == 0  # the trajectories and the annotator are there
    assert Trajectory.objects.filter(project=project).count() == 2
    other = Project.objects.create(slug="other", name="Other")
    assert load(other, text) == 2
    assert {r.trajectory.task.id for r in feedback_records(project=other)} == {
        r.trajectory.task.id for r in feedback_records(project=project)
    }
    assert sum(json.loads(line)["demonstration"] for line in EXPORTS["jsonl"](project=other, filters={})) == 2


def test_a_members_key_marks_and_takes_back(project: Project, researcher: User) -> None:
    trajectory = bring(project)
    path = f"/api/v1/trajectories/{trajectory.pk}/demonstration"

    def caller(owner: User | ServiceAccount, *scopes: Scope, place: Project = project) -> Client:
        secret = create_api_key(project=place, scopes=scopes, owner=owner, by=None)[1]
        return Client(headers={"Authorization": f"Bearer {secret}"})

    both = (Scope.FEEDBACK_READ, Scope.FEEDBACK_WRITE)
    own = caller(researcher, *both)
    unmarked = {"trajectory": str(trajectory.pk), "marked": False, "others": []}
    assert own.get(path).json() == unmarked
    for _ in range(2):  # again changes nothing
        assert own.put(f"{path}/mark").json() == unmarked | {"marked": True}
    (found,) = feedback_records(project=project)
    assert (found.annotator, found.origin, found.demonstration) == (researcher.email, "person", True)
    assert Annotation.objects.count() == 1

    other = make_member(project, "other@example.org", Role.RESEARCHER)
    theirs = caller(other, *both)
    assert theirs.get(path).json() == unmarked | {"others": [researcher.email]}
    assert theirs.delete(f"{path}/mark").json()["others"] == [researcher.email]  # the own mark only
    assert own.delete(f"{path}/mark").json() == unmarked
    assert list(feedback_records(project=project)) == []

    program = ServiceAccount.objects.create(project=project, name="bot")
    bot = caller(program, *both)
    assert bot.get(path).json() == unmarked
    for answer in (bot.put(f"{path}/mark"), bot.delete(f"{path}/mark")):
        assert answer.status_code == 403 and "not a service account" in answer.json()["detail"]
    reader = caller(researcher, Scope.FEEDBACK_READ)
    assert reader.put(f"{path}/mark").status_code == 403
    place = create_project(slug="elsewhere")
    stranger = caller(make_member(place, "far@example.org", Role.OWNER), *both, place=place)
    for answer in (stranger.get(path), stranger.put(f"{path}/mark"), stranger.delete(f"{path}/mark")):
        assert answer.status_code == 404
    assert Annotation.objects.filter(is_surplus=False).count() == 0
