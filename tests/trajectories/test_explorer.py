"""Search, filters, tags, patterns; two agents over the same tasks; two trajectories next to each other."""

from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import AuditEvent, Project, User
from apps.core.errors import DomainError
from apps.trajectories import outline, patterns, services
from apps.trajectories.agents import compare_agents
from apps.trajectories.branching import build_tree
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.models import SavedView, SearchText, Trajectory
from apps.trajectories.overview import MAX_MARKS, step_overview
from apps.trajectories.search_text import first_term
from apps.trajectories.selectors import list_agents, narrowed
from apps.trajectories.views import comparing
from tests.trajectories.conftest import record
from tests.trajectories.test_views import bring
from workers.schema import ObservationResult, Part, Step, ToolCall

LIST = "/p/desk/trajectories/"


def says(number: int, text: str, **fields: Any) -> dict[str, Any]:
    messages = [
        {"role": "user", "content": f"Task {number}."},
        {"role": "assistant", "content": text},
    ]
    return {"task": {"id": f"task-{number}"}, "messages": messages} | fields


def found(project: Project, **filters: Any) -> set[str]:
    rows = filter_trajectories(project, filters)
    return set(rows.values_list("task__external_id", flat=True))


@pytest.fixture
def words(project: Project) -> Project:
    bring(
        project,
        says(1, "The refund came too late."),
        says(2, "Too early, and late for the refund; see apps/core/x_y.py and user@example.org"),
        says(3, "Größe und 東京 refund-policy"),
        says(4, "nothing"),
    )
    return project


@pytest.mark.parametrize(
    ("query", "tasks"),
    [
        ("refund", {1, 2, 3}),
        ("REFUND late", {1, 2}),
        ('"too late"', {1}),
        ("refund -late", {3}),
        ('refund -"too late"', {2, 3}),
        ("nothing or größe", {3, 4}),
        ("core/x_y.py", {2}),
        ("example.org", {2}),
        ("refund-policy", {3}),
        ("東京", {3}),
        ("refun", set()),
        ("task-4", {4}),
        ("it's 'a' & | ! <-> :* \\", set()),
    ],
)
def test_words_are_found(words: Project, query: str, tasks: set[int]) -> None:
    assert found(words, text=query) == {f"task-{number}" for number in tasks}


def test_words_stand_in_every_part_of_a_step(project: Project) -> None:
    call = {"id": "1", "function": {"name": "findflights", "arguments": '{"city": "Lissabon"}'}}
    messages = [
        {"role": "system", "content": "sysword"},
        {"role": "user", "content": "userword"},
        {
            "role": "assistant",
            "content": "agentword",
            "reasoning_content": "thoughtword",
            "tool_calls": [call],
        },
        {"role": "tool", "tool_call_id": "1", "content": "seenword"},
    ]
    bring(project, {"task": {"id": "all"}, "messages": messages})
    for word in ("sysword", "userword", "agentword", "thoughtword", "findflights", "lissabon", "seenword"):
        assert found(project, text=word) == {"all"}, word


def test_a_very_long_trajectory_is_indexed_by_its_beginning(project: Project) -> None:
    long = " ".join(f"w{number}" for number in range(300_000))
    bring(project, says(1, f"first {long} last"), says(2, "x" * 3_000_000))
    assert found(project, text="first") == {"task-1"} == found(project, text="last")


@pytest.mark.parametrize(
    ("filters", "tasks"),
    [
        ({"agent": "fox"}, {"1", "2"}),
        ({"agent": "fox", "version": "2"}, {"2"}),
        ({"reward_from": 0.5}, {"2"}),
        ({"reward_to": 0.5, "reward_from": 0}, {"1"}),
        ({"steps_from": 3}, {"3"}),
        ({"steps_to": 2, "success": True}, {"2"}),
        ({"metadata": "model = large"}, {"1"}),
        ({"metadata": "temperature=0.5"}, {"2"}),
        ({"metadata": "temperature=0.4"}, set()),
        ({"format": "openai"}, {"1", "2", "3"}),
        ({"format": "atif"}, set()),
        ({"pattern": "empty-answer"}, {"3"}),
    ],
)
def test_filters(project: Project, filters: dict[str, Any], tasks: set[str]) -> None:
    three = says(3, "", agent="owl")
    three["messages"] += [{"role": "user", "content": "well?"}]
    bring(
        project,
        says(
            1,
            "a",
            agent={"name": "fox", "version": "1"},
            reward=0.25,
            success=False,
            metadata={"model": "large"},
        ),
        says(
            2,
            "b",
            agent={"name": "fox", "version": "2"},
            reward=1,
            success=True,
            metadata={"temperature": 0.5},
        ),
        three,
    )
    assert found(project, **filters) == {f"task-{task}" for task in tasks}


def test_metadata_that_is_no_pair(project: Project) -> None:
    with pytest.raises(DomainError, match="key=value"):
        filter_trajectories(project, {"metadata": "large"})


def test_agents_are_listed_once(project: Project) -> None:
    rows = [says(n, "a", agent={"name": "fox" if n % 2 else "", "version": str(n % 4)}) for n in range(12)]
    bring(project, *rows)
    bring(Project.objects.create(slug="other"), says(1, "a", agent="wolf"))
    assert list_agents(project) == [("", "0"), ("", "2"), ("fox", "1"), ("fox", "3")]
    assert list_agents(Project.objects.create(slug="empty")) == []


def test_counting_stops(words: Project) -> None:
    everything = Trajectory.objects.all()
    assert narrowed(everything, 2)[1] == 3
    found, count = narrowed(everything, 4)
    assert count == 4
    assert list(found.order_by("pk")) == list(everything.order_by("pk"))


def test_the_page_searches_and_says_what_went_wrong(words: Project, researcher: User, client: Client) -> None:
    bring(words, says(5, "", agent="fox"))
    page = client.get(LIST, {"text": '"too late" -x'}).content.decode()
    assert "<strong>1</strong> trajectory matches" in page and "?find=too+late" in page
    page = client.get(LIST, {"pattern": "empty-answer"}).content.decode()
    assert "Empty agent step" in page and "task-5" in page
    page = client.get(LIST, {"metadata": "large", "steps_from": "-1", "agent": "nobody"})
    assert page.status_code == 200 and b"key=value" in page.content
    assert page.context["table"].count == 0 and b"data-row" not in page.content, (
        "an invalid filter shows nothing"
    )
    assert b"No matching trajectories" in client.get(LIST, {"text": "unheard"}).content


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ({"q": "late"}, "Did you mean <code>text</code>"),
        ({"agnet": "fox"}, "Did you mean <code>agent</code>"),
        ({"z": "1"}, "so it has no effect.</p>"),
    ],
)
def test_a_misspelt_filter_is_reported(
    words: Project, researcher: User, client: Client, query: dict[str, str], answer: str
) -> None:
    for address in (LIST, f"{LIST}by-task/"):
        assert answer in client.get(address, query).content.decode()
        assert "has no effect" not in client.get(address, {"sort": "-steps", "page": "1"}).content.decode()


def test_a_value_outside_the_list_is_reported_without_codes(
    words: Project, researcher: User, client: Client
) -> None:
    page = client.get(LIST, {"pattern": "none", "agent": "fox"}).content.decode()
    assert "Failure pattern is &#x27;none&#x27;; choose one of the list." in page
    assert "must be one of" not in page


def test_nothing_is_offered_to_do_with_no_matches(words: Project, researcher: User, client: Client) -> None:
    assert b"matching-actions" in client.get(LIST).content
    assert b"matching-actions" not in client.get(LIST, {"text": "unheard"}).content


def test_tagging(words: Project, researcher: User, client: Client) -> None:
    tagged_trajectory = Trajectory.objects.get(task__external_id="task-1")
    other = bring(Project.objects.create(slug="other"), says(1, "a"))
    body = {
        "tag": " to  read ",
        "selected": [tagged_trajectory.pk, other.pk],
        "query": "text=refund&cursor=x&evil=1",
    }
    answer = client.post(f"{LIST}tags/", body)
    assert answer["Location"] == f"{LIST}?text=refund"
    assert found(words, tag="to read") == {"task-1"}
    other.refresh_from_db()
    assert other.tags == [], "of another project"
    client.post(f"{LIST}tags/", {"tag": "to read", "all_matching": "1", "query": "text=refund"})
    assert found(words, tag="to read") == {"task-1", "task-2", "task-3"}
    tagged_trajectory.refresh_from_db()
    assert tagged_trajectory.tags == ["to read"], "once"
    client.post(f"{LIST}tags/", {"tag": "to read", "all_matching": "1", "remove": "1"})
    assert found(words, tag="to read") == set()
    events = AuditEvent.objects.filter(verb__startswith="trajectories.").exclude(verb__endswith="imported")
    assert [(event.verb, event.data) for event in events.order_by("pk")] == [
        ("trajectories.tagged", {"trajectories": 1}),
        ("trajectories.tagged", {"trajectories": 2}),
        ("trajectories.untagged", {"trajectories": 3}),
    ]


@pytest.mark.parametrize(
    "body", [{}, {"tag": " "}, {"tag": "a"}, {"tag": "a", "selected": ["x"]}, {"tag": "x" * 61}]
)
def test_tagging_that_says_nothing(
    words: Project, researcher: User, client: Client, body: dict[str, Any]
) -> None:
    assert client.post(f"{LIST}tags/", body).status_code == 400


def test_views(words: Project, researcher: User, client: Client) -> None:
    save = f"{LIST}views/"
    answer = client.post(save, {"name": " Late ", "query": "text=late&success=no"})
    assert answer["Location"] == f"{LIST}?text=late&success=no"
    [view] = SavedView.objects.all()
    assert (view.name, view.query, view.created_by) == ("Late", "text=late&success=no", researcher)
    assert "?text=late&amp;success=no" in client.get(LIST).content.decode()
    assert client.post(save, {"name": "Late", "query": "text=too"}).status_code == 409
    for wrong in (
        {"name": "All", "query": ""},
        {"name": "All", "query": "evil=1"},
        {"name": "", "query": "text=a"},
    ):
        assert client.post(save, wrong).status_code == 400
    client.post(f"{save}{view.pk}/", {"name": "Too late", "query": "text=too+late"})
    view.refresh_from_db()
    assert (view.name, view.query) == ("Too late", "text=too+late")
    assert client.post(f"{save}{view.pk}/delete/").status_code == 302
    assert client.post(f"{save}{view.pk}/delete/").status_code == 404
    verbs = AuditEvent.objects.filter(verb__startswith="view.").order_by("pk").values_list("verb", flat=True)
    assert list(verbs) == ["view.created", "view.changed", "view.deleted"]


def test_what_an_older_version_imported_is_indexed(words: Project, researcher: User, client: Client) -> None:
    SearchText.objects.all().delete()
    SearchText.objects.all().delete()
    Trajectory.objects.update(patterns=None, tools=None, failed_tools=None)
    assert b"index_trajectories desk" in client.get(LIST).content
    assert services.index_trajectories(words) == 4
    assert found(words, text='"too late"') == {"task-1"}
    assert not Trajectory.objects.filter(tools=None).exists()
    assert services.index_trajectories(words) == 0
    assert b"index_trajectories" not in client.get(LIST).content


def agent(text: str = "", *calls: tuple[str, str], seen: str | None = "ok", **fields: Any) -> Step:
    made = tuple(ToolCall(name=name, arguments={"q": said}) for name, said in calls)
    results = (ObservationResult(content=(Part(text=seen),)),) if made and seen is not None else ()
    message = (Part(text=text),) if text else ()
    return Step(source="agent", message=message, tool_calls=made, observation=results, **fields)


A, B, C = (agent("", ("do", word)) for word in "abc")
TRACE = agent("", ("do", "y"), seen="Traceback (most recent call last)\n")
BROKEN = agent("", ("do", "x"), seen="Error: no such user")


@pytest.mark.parametrize(
    ("steps", "names"),
    [
        ([agent("Hello.")], []),
        ([A, B, A, C], []),
        ([A, A], []),
        ([A, A, A], ["repeated-action"]),
        ([A, B, A, B, A, B], ["repeated-action"]),
        ([A, B, A, B, A], []),
        ([A, B, C, A, B, C, A, B, C], ["repeated-action"]),
        ([agent("Hm."), agent("Hm."), agent("Hm.")], []),
        ([BROKEN, A], ["tool-error"]),
        (
            [BROKEN, agent("", ("do", "y"), seen="Traceback (most recent call last)\n"), BROKEN],
            ["tool-error", "error-loop"],
        ),
        ([agent()], ["empty-answer"]),
        ([agent(features=(1.0,))], []),
        ([agent("x", ("do", "a"), seen=None)], ["unfinished"]),
    ],
)
def test_patterns(steps: list[Step], names: list[str]) -> None:
    assert patterns.detect_patterns(steps) == names


@pytest.mark.parametrize(
    "text",
    [
        "Error: user not found",
        "  error - x",
        "Traceback (most recent call last):\n  File",
        "line\nValueError: bad",
        "requests.exceptions.ConnectionError: x",
        "bash: foo: command not found",
        "ls: x: No such file or directory\n",
        "<returncode>1</returncode>",
        "Process exited with code 2",
        '{"error": "x"}',
        '{"status": "failed"}',
        '{"exit_code": 1}',
        "x" * 100_000 + "\nKeyError: 'a'",
    ],
)
def test_an_answer_that_failed(text: str) -> None:
    assert patterns.is_failed_result(ObservationResult(content=(Part(text=text),)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No errors were found.",
        "the error rate is 3 %",
        "<returncode>0</returncode>",
        "exited with code 0",
        '{"error": null, "status": "ok", "exit_code": 0}',
        '{"errors": []}',
        "raise ValueError(x)",
    ],
)
def test_an_answer_that_did_not(text: str) -> None:
    assert not patterns.is_failed_result(ObservationResult(content=(Part(text=text),)))


def test_two_agents_over_the_same_tasks(project: Project, researcher: User, client: Client) -> None:
    rows = [says(n, f"a{n}", agent="fox", success=n < 2) for n in range(6)]
    rows += [says(n, f"b{n}", agent={"name": "fox", "version": "2"}, success=n > 0) for n in range(1, 8)]
    bring(project, *rows)
    comparison = compare_agents(project, ("fox", ""), ("fox", "2"))
    assert (comparison.shared, comparison.only_a, comparison.only_b) == (5, 1, 2)
    measures = {measure.name: measure for measure in comparison.measures}
    assert (measures["success"].a, measures["success"].b, measures["success"].n) == (0.2, 1.0, 5)
    assert measures["success"].is_clear and not measures["steps"].is_clear
    assert "cost" not in measures and "reward" not in measures
    assert [change.task for change in comparison.better] == ["task-2", "task-3", "task-4", "task-5"]
    assert comparison.worse == []
    page = client.get(f"{LIST}agents/", {"a": "fox@", "b": "fox@2"}).content.decode()
    assert "+80.0 %" in page and f"/compare/{comparison.better[0].trajectory_b}/" in page
    assert (
        "Choose two different agents"
        in client.get(f"{LIST}agents/", {"a": "fox@", "b": "fox@"}).content.decode()
    )
    assert client.get(f"{LIST}agents/", {"a": "wolf@", "b": "fox@"}).status_code == 400
    overview = client.get(f"{LIST}agents/").content.decode()
    assert "33.3 %" in overview and "[9.7, 70.0]" in overview and "?agent=fox&amp;version=2" in overview
    both = client.get(f"{LIST}agents/", {"selected": ["fox@", "fox@2"]})
    assert both["Location"] == f"{LIST}agents/?a=fox%40&b=fox%402"
    assert client.get(f"{LIST}agents/", {"selected": ["fox@"]}).status_code == 400


def test_agents_without_a_task_in_common(project: Project, researcher: User, client: Client) -> None:
    assert b"No agents yet" in client.get(f"{LIST}agents/").content
    bring(project, says(1, "a", agent="fox"), says(2, "a", agent="owl"))
    page = client.get(f"{LIST}agents/", {"a": "fox@", "b": "owl@"}).content
    assert b"No common tasks" in page


def test_two_trajectories_beside_each_other(project: Project, researcher: User, client: Client) -> None:
    bring(project, *(record(n) for n in range(1)))

    def run(words: list[str]) -> Trajectory:
        messages = [{"role": "user", "content": "Begin."}]
        messages += [{"role": "assistant", "content": word} for word in words]
        return bring(project, {"task": {"id": "t"}, "messages": messages})

    left = run([f"the same {n}" for n in range(30)])
    right = run(["the same 0", "<b>other</b> words", *(f"the same {n}" for n in range(2, 31))])
    url = f"{LIST}{left.pk}/compare/{right.pk}/"
    page = client.get(url).content.decode()
    assert "2 equal steps at the start, then 2 differences" in page
    assert "&lt;b&gt;other" in page and page.count('id="row-') == 20 and "start=20" in page
    more = client.get(f"{url}?start=20", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in more and more.count('id="row-') == 10
    for headers, is_page in (({"HX-Request": "true"}, False), ({}, True)):
        prefix = client.get(f"{url}?start=prefix", headers=headers).content.decode()
        assert prefix.count("<article") == 2 and ("<html" in prefix) == is_page
    assert client.get(f"{url}?start=20").content.decode().count('id="row-') == 10, "without a script"
    assert client.get(f"{url}?start=x").status_code == 400
    assert client.get(f"{LIST}{left.pk}/compare/999999999/").status_code == 404
    assert "All steps are equal" in client.get(f"{LIST}{left.pk}/compare/{left.pk}/").content.decode()


def test_runs_of_a_task_are_a_tree() -> None:
    runs = {1: [A, B, C], 2: [A, B], 3: [A, C, BROKEN], 4: [A, B, C], 5: [A, B, A]}
    tree = build_tree(runs)
    assert (tree.trajectories, [mark.index for mark in tree.steps], tree.ended) == ([1, 2, 3, 4, 5], [0], [])
    most, least = tree.branches
    assert (most.trajectories, [mark.index for mark in most.steps], most.ended) == ([1, 2, 4, 5], [1], [2])
    assert [(branch.trajectories, branch.ended) for branch in most.branches] == [([1, 4], [1, 4]), ([5], [5])]
    assert (least.trajectories, [mark.failed for mark in least.steps], least.ended) == (
        [3],
        [False, True],
        [3],
    )
    assert build_tree({7: [A] * 3000}).ended == [7]


def test_the_tree_on_its_page(
    project: Project, researcher: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for ending in ("well", "badly", "well enough"):
        messages = [{"role": "user", "content": "Begin."}]
        messages += [{"role": "assistant", "content": f"step <b>{n}</b>"} for n in range(12)]
        row = bring(
            project, {"task": {"id": "t"}, "messages": [*messages, {"role": "assistant", "content": ending}]}
        )
    page = client.get(f"{LIST}tasks/{row.task_id}/").content.decode()
    assert (
        "3 trajectories" in page
        and "5 more" in page
        and "&lt;b&gt;0" in page
        and page.count("branch-end") == 3
    )
    assert "success" not in page
    assert client.get(f"{LIST}tasks/999999999/").status_code == 404
    monkeypatch.setattr(comparing, "_MAX_TOKENS", 1)
    page = client.get(f"{LIST}tasks/{row.task_id}/").content.decode()
    assert "the newest 1 are shown" in page and page.count("branch-end") == 1
    row.task.trajectories.all().delete()
    assert b"No trajectories" in client.get(f"{LIST}tasks/{row.task_id}/").content


def test_find(project: Project, researcher: User, client: Client) -> None:
    steps = [
        Step(source="user", message=(Part(text="Find  the\nKEY, please."),)),
        agent("", ("look", "the key"), seen="<mark>the key</mark> " * 300),
    ]
    places = outline.find_text(steps, "the  key")
    assert len(places) == outline.MAX_MATCHES
    assert [(match.index, match.where) for match in places[:3]] == [
        (0, "message"),
        (1, "arguments"),
        (1, "observation"),
    ]
    assert (places[0].before, places[0].text, places[0].after) == ("Find  ", "the\nKEY", ", please.")
    assert outline.find_text(steps, " ") == [] == outline.find_text(steps, "(.*")
    row = bring(project, says(1, "<script>hit()</script> here"))
    page = client.get(f"{LIST}{row.pk}/find/", {"find": "HIT()"}).content.decode()
    assert "&lt;script&gt;<mark>hit()</mark>&lt;/script&gt;" in page and "1 match<" in page
    assert (
        "was not found in this trajectory"
        in client.get(f"{LIST}{row.pk}/find/", {"find": "<b>"}).content.decode()
    )
    assert "1 match<" in client.get(f"{LIST}{row.pk}/", {"find": "here"}).content.decode()


def test_marks_of_a_very_long_run_are_thinned_out() -> None:
    steps = [BROKEN if n == 4_321 else A for n in range(9_000)]
    found = step_overview(steps)
    assert len(found.marks) <= MAX_MARKS and found.failures == [4_321]
    assert [mark.index for mark in found.marks if mark.failed] == [4_321]
    assert (found.marks[0].first, found.marks[0].last) == (0, found.per_mark - 1)
    assert found.marks[-1].last == 8_999
    assert len(step_overview(steps[:MAX_MARKS]).marks) == MAX_MARKS


@pytest.mark.parametrize(
    ("query", "term"),
    [('-x "too late" y', "too late"), ("or refund", "refund"), ("-a", ""), ("", ""), ("a b", "a")],
)
def test_what_the_viewer_looks_for(query: str, term: str) -> None:
    assert first_term(query) == term
