"""Comments and step labels for the trajectory viewer."""

from collections.abc import Iterator

from apps.annotation.corrections import loaded_corrections
from apps.annotation.feedback.records import newest_revision
from apps.annotation.models import Annotation, Comment, Origin, StepLabelSet
from apps.trajectories.notes import Note
from workers.schema.step_corrections import correction_text

_ANNOTATOR = "annotation__assignment__annotator"


def notes(trajectory_id: int, agent_steps: list[int]) -> Iterator[Note]:
    """Notes of the newest revisions; labels of existing steps only."""
    newest = newest_revision("annotation__assignment")
    counts = {"annotation__is_surplus": False, "annotation__revision": newest}
    for comment in Comment.objects.filter(trajectory=trajectory_id, **counts).select_related(_ANNOTATOR):
        author = _annotator_name(comment.annotation)
        yield Note(author, comment.text, comment.first_step, comment.last_step, comment.sign or 0)
    for label_set in StepLabelSet.objects.filter(trajectory=trajectory_id, **counts).select_related(
        _ANNOTATOR
    ):
        author = _annotator_name(label_set.annotation)
        labels = {int(step): label for step, label in label_set.labels.items()}
        corrections = loaded_corrections(label_set.corrections)
        if label_set.has_first_error and label_set.first_error is not None:
            labels[label_set.first_error] = "bad"
        elif label_set.has_first_error:
            yield Note(author, "no error")
        for step, label in sorted(labels.items()):
            if step < len(agent_steps):
                is_first = label_set.has_first_error and step == label_set.first_error
                text = "first error" if is_first else label
                text += f"; better: {correction_text(corrections[step])}" if step in corrections else ""
                yield Note(author, text, agent_steps[step], agent_steps[step])


def _annotator_name(annotation: Annotation) -> str:
    """The annotator's name, marked if it is a judge."""
    name, origin = annotation.assignment.annotator.name, annotation.origin
    return f"{name} (judge)" if origin == Origin.JUDGE else name
