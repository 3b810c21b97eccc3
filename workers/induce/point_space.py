"""Where points of comments lie: near each other if they mean, or are worded, the same.

Three channels of equal weight: the embedding after the encoder's last layer, the embedding after a middle layer (which
keeps more of the wording), and pieces of words weighted by how rare they are. The mean over all points is taken off
both embeddings, because points of one project have a subject in common, which says nothing about any of them.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.random_projection import SparseRandomProjection

from workers.induce.grounding import Evidence
from workers.induce.step_features import Encode, FloatArray, unit_rows

_PIECES = (3, 5)  # characters of a piece of a word
_MAX_PIECES = 512  # numbers that pieces are projected to (Achlioptas 2003), which keeps their cosines


class PointSpace:
    """Fitted on the points that are compared. encode, encode_middle: texts to embeddings of the last and a middle
    layer."""

    def __init__(self, points: Sequence[str], encode: Encode, encode_middle: Encode) -> None:
        self._encoders = (encode, encode_middle)
        self._means = tuple(encoder(points).mean(axis=0) for encoder in self._encoders)
        self._pieces = TfidfVectorizer(analyzer="char_wb", ngram_range=_PIECES, sublinear_tf=True)
        width = self._pieces.fit_transform(points).shape[1]
        self._projection = (
            SparseRandomProjection(_MAX_PIECES, dense_output=True, random_state=0).fit(np.zeros((1, width)))
            if width > _MAX_PIECES
            else None
        )

    def __call__(self, texts: Sequence[str]) -> FloatArray:
        """[texts, dimensions], of unit length; [0, 0] of none."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        embeddings = (
            unit_rows(encoder(texts) - mean)
            for encoder, mean in zip(self._encoders, self._means, strict=True)
        )
        pieces = self._pieces.transform(texts)
        dense = self._projection.transform(pieces) if self._projection is not None else pieces.toarray()
        found = np.concatenate([*embeddings, unit_rows(np.asarray(dense, np.float32))], axis=1)
        return unit_rows(found.astype(np.float32))


def place_points(evidence: Evidence, encode: Encode, encode_middle: Encode) -> tuple[Evidence, PointSpace]:
    """The evidence with its points in a space fitted on them, and the space. At least one point."""
    texts = [aspect.feedback for aspect in evidence.aspects]
    space = PointSpace(texts, encode, encode_middle)
    return replace(evidence, text=space(texts)), space
