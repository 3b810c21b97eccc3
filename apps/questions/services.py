"""Questions are asked, receive their answers, are retried, and become tags, facts and rubrics."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import Count

from apps.accounts.actors import Actor, person_of
from apps.accounts.models import Project
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState
from apps.llm.models import LLMConnection
from apps.questions.models import QuestionAnswer, TrajectoryQuestion
from apps.rubrics.models import Rubric
from apps.rubrics.services import CriterionDraft, save_rubric
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import parse_filter
from apps.trajectories.models import Trajectory
from apps.trajectories.services import tag_trajectories

ADVANCE = "apps.questions.tasks.advance_questions"
DEFAULT_SAMPLE, MAX_SAMPLE = 100, 2000
MIN_CATEGORIES, MAX_CATEGORIES = 2, 20
LONGEST_TEXT = 500
LONGEST_TAG = 60
# A random sample that is the same for the same question: by the MD5 of its number and the trajectory's.
_SAMPLE = """
    INSERT INTO questions_questionanswer (question_id, trajectory_id, state, label, explanation, steps, problem)
    SELECT %s, id, 'waiting', '', '', '{{}}', '' FROM ({rows}) AS matching
    ORDER BY md5(%s || '-' || id::text) LIMIT %s
"""


@transaction.atomic
def ask_question(
    *,
    project: Project,
    text: str,
    llm_connection: LLMConnection,
    query: str = "",
    sample: int = DEFAULT_SAMPLE,
    max_categories: int = 8,
    by: Actor = None,
) -> TrajectoryQuestion:
    """Queue a question about the trajectories that pass the filter now.

    sample: trajectories asked about; where more pass, these are drawn at random. Raises DomainError.
    """
    text = " ".join(text.split())
    _check(text, sample, max_categories)
    if llm_connection.project_id != project.pk:
        raise DomainError(
            "The LLM connection belongs to another project.", pointer="/llm_connection", status=404
        )
    filter = parse_filter(query)
    matching = filter_trajectories(project, filter)
    question = TrajectoryQuestion.objects.create(
        project=project,
        text=text,
        query=filter.query,
        llm_connection=llm_connection,
        max_categories=max_categories,
        matching=matching.count(),
        created_by=person_of(by),
    )
    if not question.matching:
        raise DomainError(
            "No trajectory passes the filter. Change it, or import trajectories first.", pointer="/filter"
        )
    rows, parameters = matching.order_by().values("id").query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(_SAMPLE.format(rows=rows), [question.pk, *parameters, str(question.pk), sample])
    record_audit(
        project=project,
        actor=by,
        verb="question.asked",
        target=str(question),
        data={"text": text, "query": question.query, "trajectories": min(sample, question.matching)},
    )
    job_queue.nudge_on_commit(ADVANCE)
    return question


def _check(text: str, sample: int, max_categories: int) -> None:
    if not 3 <= len(text) <= LONGEST_TEXT:
        raise DomainError(
            f"The question has {len(text)} characters; write 3 to {LONGEST_TEXT}.", pointer="/text"
        )
    if not 1 <= sample <= MAX_SAMPLE:
        raise DomainError(f"The sample is {sample}; choose 1 to {MAX_SAMPLE:,}.", pointer="/sample")
    if not MIN_CATEGORIES <= max_categories <= MAX_CATEGORIES:
        raise DomainError(
            f"{max_categories} categories; choose {MIN_CATEGORIES} to {MAX_CATEGORIES}.",
            pointer="/max_categories",
        )


def store_answers(question: TrajectoryQuestion, lines: Iterable[Mapping[str, Any]]) -> None:
    """Store lines of `found.jsonl` as `workers.questions` writes them. Raises ClaimLost."""
    read = {int(line["trajectory"]): line for line in lines}
    with job_queue.fenced(question):
        rows = list(question.answers.filter(trajectory__in=read))
        for row in rows:
            line = read[row.trajectory_id]
            row.problem = line.get("problem", "")
            row.state = QuestionAnswer.State.FAILED if row.problem else QuestionAnswer.State.DONE
            row.label = line.get("label") or ""
            row.explanation, row.steps = line.get("explanation", ""), line.get("steps", [])
        QuestionAnswer.objects.bulk_update(rows, ["state", "label", "explanation", "steps", "problem"], 500)


def store_categories(question: TrajectoryQuestion, categories: Sequence[Mapping[str, Any]]) -> None:
    """Store `categories` of `result.json`, the most frequent first. Raises ClaimLost."""
    with job_queue.fenced(question):
        counts = label_counts(question)
        ordered = sorted(
            categories, key=lambda category: -sum(counts.get(label, 0) for label in category["labels"])
        )
        question.answers.update(category=None)
        for place, category in enumerate(ordered):
            question.answers.filter(label__in=category["labels"]).update(category=place)
        question.result["categories"] = [
            {"name": category["name"], "definition": category["definition"]} for category in ordered
        ]


def label_counts(question: TrajectoryQuestion) -> dict[str, int]:
    """How many trajectories have each label."""
    answered = question.answers.filter(state=QuestionAnswer.State.DONE).exclude(label="")
    return dict(answered.values_list("label").annotate(count=Count("pk")).order_by())


@transaction.atomic
def retry_failed_answers(*, question: TrajectoryQuestion, by: Actor) -> None:
    """Ask again where there is no answer, and sort all answers again. Raises Conflict."""
    locked = TrajectoryQuestion.objects.select_for_update().get(pk=question.pk)
    if not locked.is_finished:
        raise Conflict("The question is still being answered. Wait for its end, or cancel it.")
    if locked.llm_connection_id is None:
        raise Conflict("The LLM connection of this question was deleted. Ask it again with another one.")
    failed = locked.answers.filter(state=QuestionAnswer.State.FAILED)
    if (
        not failed.update(state=QuestionAnswer.State.WAITING, problem="")
        and locked.state == JobState.SUCCEEDED
    ):
        raise Conflict("Every trajectory has an answer, so there is nothing to retry.")
    job_queue.requeue(locked, even_done=True)
    job_queue.nudge_on_commit(ADVANCE)
    record_audit(project=locked.project, actor=by, verb="question.retried", target=str(locked), data={})


def tag_category(*, question: TrajectoryQuestion, category: int, tag: str = "", by: Actor) -> tuple[str, int]:
    """Tag the trajectories of a category, by default with its name; the tag, and how many were new. Raises
    DomainError."""
    name = category_name(question, category)
    tag = " ".join((tag or name[:LONGEST_TAG]).split())
    if not 1 <= len(tag) <= LONGEST_TAG:
        raise DomainError(f"The tag has {len(tag)} characters; write 1 to {LONGEST_TAG}.", pointer="/tag")
    answers = question.answers.filter(category=category)
    rows = Trajectory.objects.filter(project=question.project_id, pk__in=answers.values("trajectory"))
    return tag, tag_trajectories(project=question.project, rows=rows, tag=tag, by=by)


def category_name(question: TrajectoryQuestion, category: int) -> str:
    """Raises DomainError where there is no such category."""
    categories = question.result.get("categories", [])
    if not 0 <= category < len(categories):
        raise DomainError(
            f"The question has no category {category}; it has {len(categories)}, counted from 0.",
            pointer="/category",
            status=404,
        )
    return str(categories[category]["name"])


@transaction.atomic
def create_rubric(*, question: TrajectoryQuestion, name: str, by: Actor) -> Rubric:
    """A rubric with a criterion for each category, for people and judges to score trajectories by. Raises
    DomainError."""
    categories = question.result.get("categories", [])
    if not categories:
        raise DomainError("The question has no categories yet. Wait until it is answered.", status=409)
    drafts = [
        CriterionDraft(
            name=category["name"],
            definition=category["definition"] or f"How far this holds: {category['name']}.",
        )
        for category in categories
    ]
    about = f"From the answers to: {question.text}"
    rubric = save_rubric(project=question.project, name=name, criteria=drafts, about=about, by=by)
    record_audit(
        project=question.project,
        actor=by,
        verb="question.rubric_created",
        target=str(question),
        data={"rubric": str(rubric)},
    )
    return rubric


@transaction.atomic
def delete_question(*, question: TrajectoryQuestion, by: Actor) -> None:
    """With its answers; tags and rubrics made from it are kept. Raises Conflict while it is being answered."""
    locked = TrajectoryQuestion.objects.select_for_update().get(pk=question.pk)
    if not locked.is_finished:
        raise Conflict("The question is still being answered. Cancel it first.")
    record_audit(
        project=locked.project,
        actor=by,
        verb="question.deleted",
        target=str(locked),
        data={"text": locked.text},
    )
    locked.delete()
