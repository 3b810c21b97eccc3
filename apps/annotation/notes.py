"""Comments and step labels, as the viewer of trajectories shows them."""

from collections.abc import Iterator

from apps.annotation.feedback.records import newest_revision
from apps.annotation.models import Annotation, Comment, Origin, StepLabelSet
from apps.trajectories.notes import Note

_WHO = "annotation__assignment__annotator"


def notes(trajectory_id: int, agent_steps: list[int]) -> Iterator[Note]:
    """Of the newest revision of each answer; labels of steps that are there."""
    newest = newest_revision("annotation__assignment")
    counts = {"annotation__is_surplus": False, "annotation__revision": newest}
    for comment in Comment.objects.filter(trajectory=trajectory_id, **counts).select_related(_WHO):
        who = _who(comment.annotation)
        yield Note(who, comment.text, comment.first_step, comment.last_step, comment.sign or 0)
    for marking in StepLabelSet.objects.filter(trajectory=trajectory_id, **counts).select_related(_WHO):
        who = _who(marking.annotation)
        told = {int(step): label for step, label in marking.labels.items()}
        if marking.has_first_error and marking.first_error is not None:
            told[marking.first_error] = "bad"
        elif marking.has_first_error:
            yield Note(who, "no error")
        for step, label in sorted(told.items()):
            if step < len(agent_steps):
                is_first = marking.has_first_error and step == marking.first_error
                text = "first error" if is_first else label
                correction = marking.corrections.get(str(step))
                text += f"; better: {correction}" if correction else ""
                yield Note(who, text, agent_steps[step], agent_steps[step])


def _who(annotation: Annotation) -> str:
    """Their name, and that they are a judge where they are one."""
    name, origin = annotation.assignment.annotator.name, annotation.origin
    return f"{name} (judge)" if origin == Origin.JUDGE else name
