"""report.json: how good a model is, on data it has not seen."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.evaluate.annotators import leave_one_out
from workers.evaluate.preference import Prediction, compare_predictions, predictions, preference_report
from workers.models import ChunkCache, LoadedModel
from workers.models.step_encoder import by_tokens
from workers.schema import FeedbackRecord, PreferenceRecord
from workers.text.pairs import collect_pairs


def evaluate(
    model: LoadedModel,
    test: Sequence[FeedbackRecord],
    *,
    validation: Sequence[FeedbackRecord] = (),
    cache: ChunkCache | None = None,
) -> dict[str, Any]:
    """The report on `test`; the temperature is fitted on `validation`. A measure that does not apply is null."""
    started = time.monotonic()
    found = predict(model, test, cache=cache)
    measured = preference_report(found, predict(model, validation, cache=cache))
    preferences = [record for record in test if isinstance(record, PreferenceRecord)]
    return {
        "annotators": leave_one_out(preferences),
        "preference": measured and measured["preference"],
        "calibration": measured and measured["calibration"],
        "length_correlation": length_correlation(found),
        "seconds": time.monotonic() - started,
    }


def predict(
    model: LoadedModel, records: Sequence[FeedbackRecord], *, cache: ChunkCache | None = None
) -> list[Prediction]:
    """What the model gives both sides of every usable comparison by its criterion, in the order of the records."""
    pairs = collect_pairs(records, model.renderer, criterion=model.manifest["criterion"])
    raw = [score.raw for batch in by_tokens(pairs.rendered) for score in model.score(batch, cache=cache)]
    return predictions(pairs, raw)


def compare(model: LoadedModel, other: LoadedModel, records: Sequence[FeedbackRecord]) -> dict[str, Any]:
    """{difference, interval, n}: accuracy of `model` minus that of `other`, paired, by task."""
    return compare_predictions(predict(model, records), predict(other, records))


def length_correlation(found: Sequence[Prediction]) -> float | None:
    """Spearman's, of reward with length, over distinct trajectories; None where either does not vary."""
    seen = {
        side.content_hash: (one.raw[place], one.length[place])
        for one in found
        for place, side in enumerate((one.record.a, one.record.b))
    }
    if len(seen) < 2:
        return None
    rewards, lengths = (_ranks(np.array(column, dtype=float)) for column in zip(*seen.values(), strict=True))
    if rewards.std() == 0 or lengths.std() == 0:
        return None
    return float(np.corrcoef(rewards, lengths)[0, 1])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 0, equal values sharing their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mean: NDArray[np.float64] = (ends - counts + ends - 1) / 2
    return mean[place]
