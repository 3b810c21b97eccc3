"""k-fold by task: every comparison is predicted by a model that saw nothing of its task."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

from workers.evaluate.preference import Prediction, predictions
from workers.models import ChunkCache, build
from workers.schema import PreferenceRecord
from workers.schema.recipe import Recipe
from workers.text.pairs import collect_pairs
from workers.train.events import Report
from workers.train.loop import Fit, Limits, Stopped
from workers.train.optimiser import uses_bfloat16
from workers.train.pairs import require_usable
from workers.train.rewards import encode_ahead, measured_rewards

_VALIDATION = 10  # of the other folds' tasks, one in so many is for early stopping


@dataclass(frozen=True)
class Folds:
    """What every fold's training has in common. encoder: shared by all where it is frozen, else None.

    folder: where finished folds are kept, so that a run that is taken up again does not train them twice.
    """

    recipe: Recipe
    seed: int
    device: torch.device
    report: Report
    limits: Limits = field(default_factory=Limits)
    cache: ChunkCache | None = None
    encoder: nn.Module | None = None
    folder: Path | None = None

    def predict(self, records: Sequence[PreferenceRecord]) -> list[Prediction]:
        """Of every usable record once, by the model of the fold that does not hold its task."""
        self._encode_ahead(records)
        found: list[Prediction] = []
        for fold in range(self.recipe.folds):
            here = [record for record in records if self.fold_of(record, self.recipe.folds, 0) == fold]
            rest = [record for record in records if self.fold_of(record, self.recipe.folds, 0) != fold]
            if here:
                self.report(message=f"fold {fold + 1} of {self.recipe.folds}")
                found += self._predict_fold(fold, rest, here)
        return found

    def _encode_ahead(self, records: Sequence[PreferenceRecord]) -> None:
        """All at once: which folds are still to be trained must not change how chunks are grouped."""
        if self.cache is None or self.recipe.unfrozen:
            return
        model, renderer = build(self.recipe, self.encoder)
        rendered = collect_pairs(records, renderer, criterion=self.recipe.criterion).rendered
        bfloat16 = uses_bfloat16(self.recipe, self.device)
        model.to(self.device)
        for _ in encode_ahead(model, renderer, rendered, cache=self.cache, bfloat16=bfloat16):
            if self.limits.stop():
                raise Stopped

    def fold_of(self, record: PreferenceRecord, folds: int, salt: int) -> int:
        """By a hash of the task, so that a task's fold does not change when others are added."""
        text = f"{self.seed}/{salt}/{record.a.task.id}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % folds

    def _predict_fold(
        self, fold: int, rest: list[PreferenceRecord], here: list[PreferenceRecord]
    ) -> list[Prediction]:
        torch.manual_seed(self.seed)
        model, renderer = build(self.recipe, self.encoder)
        held_out = collect_pairs(here, renderer, criterion=self.recipe.criterion)
        kept = self.folder / f"fold-{fold}.json" if self.folder else None
        if kept is not None and kept.is_file():
            raw: list[float] = json.loads(kept.read_text())
            return predictions(held_out, raw)
        for_validation = [self.fold_of(record, _VALIDATION, 1) == 0 for record in rest]
        train, validation = (
            collect_pairs(
                [record for record, is_it in zip(rest, for_validation, strict=True) if is_it is wanted],
                renderer,
                criterion=self.recipe.criterion,
            )
            for wanted in (False, True)
        )
        require_usable(train)
        fit = Fit(
            model.to(self.device),
            renderer,
            self.recipe,
            train=train,
            validation=validation,
            seed=self.seed,
            report=self.report,
            cache=self.cache,
            limits=self.limits,
        )
        fit.run()
        # In the precision of training: a measurement of the recipe, not the model that will be served.
        raw = measured_rewards(
            model,
            renderer,
            held_out.rendered,
            aggregation=self.recipe.aggregation,
            cache=self.cache if model.frozen else None,
            bfloat16=fit.bfloat16,
        ).tolist()
        if kept is not None:
            kept.parent.mkdir(exist_ok=True)
            part = kept.with_suffix(".part")
            part.write_text(json.dumps(raw))
            part.replace(kept)
        return predictions(held_out, raw)
