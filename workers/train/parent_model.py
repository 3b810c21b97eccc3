"""The model that a training goes on from, and all that it has seen."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from workers.models import LoadedModel, load
from workers.models.backbones.encoder import EMBEDDED
from workers.schema import FeedbackRecord, read_records
from workers.schema.parents import DECODER_KINDS, image_encoder_of, require_parent
from workers.schema.recipe import Recipe
from workers.schema.records import record_trajectories


@dataclass(frozen=True, slots=True)
class Parent:
    """folder: `model/`, its artifact, and `seen-*.jsonl.zst`, what it and those before it were trained on."""

    folder: Path
    loaded: LoadedModel

    def recipe(self, recipe: Recipe) -> Recipe:
        """The recipe, whose pretrained part is the parent's own where the parent has one."""
        backbone = self.loaded.manifest["backbone"]
        sees = image_encoder_of(self.loaded.manifest, name=str(self.folder / "model"))
        recipe = replace(recipe, image_encoder=sees)
        if backbone["kind"] in DECODER_KINDS:
            return replace(recipe, decoder=str(self.folder / "model"))
        if backbone.get("encoder", EMBEDDED) == EMBEDDED:
            return replace(recipe, encoder=EMBEDDED if "encoder" in backbone else recipe.encoder)
        # Whatever else it says: an imported manifest names no folder of this machine.
        return replace(recipe, encoder=str(self.folder / "model"))

    def seen_tasks(self) -> frozenset[str]:
        return frozenset(side.task.id for record in self.seen() for side in record_trajectories(record))

    def seen(self) -> Iterator[FeedbackRecord]:
        for path in sorted(self.folder.glob("seen-*.jsonl.zst")):
            yield from read_records(path)


def read_parent(folder: Path, recipe: Recipe) -> Parent:
    """Raises RewardError where its weights would not fit the recipe."""
    loaded = load(folder / "model")
    require_parent(recipe, loaded.manifest)
    return Parent(folder, loaded)
