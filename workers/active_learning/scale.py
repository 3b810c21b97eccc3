"""Features of many kinds of backbones on one scale."""

import numpy as np

from workers.active_learning.posterior import Numbers

MOST_COMPONENTS = 96


def scale_features(features: Numbers, *, most: int = MOST_COMPONENTS) -> Numbers:
    """[n, at most `most`] of [n, d]: principal components, whitened halfway, rows of length 1 in the root mean square.

    Each component counts by the root of its standard deviation: neither do a few directions decide everything, nor
    does what hardly varies count as much as what does.
    """
    centred = features - features.mean(0)
    deviation = centred.std(0)
    centred = centred / np.where(deviation > 1e-9, deviation, 1.0)
    variances, directions = np.linalg.eigh(centred.T @ centred / max(1, len(centred)))
    kept = np.argsort(-variances)[:most]
    kept = kept[variances[kept] > 1e-9 * max(1e-300, variances.max())]
    rows = centred @ directions[:, kept] / variances[kept] ** 0.25
    size = float(np.sqrt((rows**2).sum(1).mean())) if rows.size else 0.0
    return rows / size if size > 0 else np.zeros((len(features), 1))
