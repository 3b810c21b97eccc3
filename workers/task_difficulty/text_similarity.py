"""The similarity of the texts of tasks: cosines of their hashed words and word pairs, rare ones counting more."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from workers.text.ngrams import COLUMNS, word_columns_by_text


class TextVectors:
    """Learns the document frequencies of `texts`, so that later ones are read alike."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = _counts(texts)
        found = np.asarray((counts > 0).sum(axis=0)).ravel()
        self._weights = np.log((1 + len(texts)) / (1 + found)) + 1
        self.rows = self._weighted(counts)

    def read(self, texts: Sequence[str]) -> Any:
        """[texts, columns], sparse rows of length 1; of a text without words, 0."""
        return self._weighted(_counts(texts))

    def _weighted(self, counts: Any) -> Any:
        rows = counts.copy()
        rows.data = np.log1p(rows.data)
        rows = sparse.csr_matrix(rows.multiply(self._weights))
        lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        return sparse.diags_array(1 / np.maximum(lengths, 1e-12)) @ rows


def _counts(texts: Sequence[str]) -> Any:
    owners, columns = word_columns_by_text(texts)
    cells = (np.ones(len(columns)), (owners, columns))
    return sparse.csr_matrix(cells, shape=(len(texts), COLUMNS))
