"""How many pictures a dataset has, and how many of them a training reads."""

from collections.abc import Iterable

from workers.models.kinds import recipe_kind
from workers.schema import FeedbackRecord
from workers.schema.parents import GOAL_LIKENESS, VISION_DECODER
from workers.schema.recipe import Recipe
from workers.schema.records import record_trajectories
from workers.text.pictures import count_pictures
from workers.train.events import Report


def report_pictures(
    records: Iterable[FeedbackRecord], recipe: Recipe, *, events: Report
) -> dict[str, int] | None:
    """{"count", "read"} of the distinct trajectories; None without pictures. An event names those that are not read."""
    distinct = {each.content_hash: each for record in records for each in record_trajectories(record)}
    count, at_hand = count_pictures(distinct.values())
    if not count:
        return None
    is_read = bool(recipe.image_encoder) or recipe_kind(recipe) in (VISION_DECODER, GOAL_LIKENESS)
    if not is_read:
        events(message=f"{count:,} pictures are not read, since `image_encoder` names nothing")
    elif at_hand < count:
        events(message=f"{count - at_hand:,} of {count:,} pictures are not in the data, and are not read")
    return {"count": count, "read": at_hand if is_read else 0}
