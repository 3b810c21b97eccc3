"""The similarity of the texts of tasks: cosines of their words and word pairs, rare ones counting more.

Words are runs of letters and digits in lower case. A vocabulary, not the hashed n-grams of
`workers.text`: the web process reads this, and loads no tokeniser.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse


class TextVectors:
    """Learns the words of `texts` and how many of them have each, so that later texts are read alike."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [_terms(text) for text in texts]
        found = Counter(term for each in counts for term in each)
        self._columns = {term: column for column, term in enumerate(found)}
        self._weights = np.log((1 + len(texts)) / (1 + np.array([*found.values()], dtype=np.float64))) + 1

    def read(self, texts: Sequence[str]) -> Any:
        """[texts, terms], sparse rows of length 1; of a text without known words, 0."""
        cells, ends = list[tuple[int, float]](), [0]
        for text in texts:
            known = [
                (self._columns[term], np.log1p(count))
                for term, count in _terms(text).items()
                if term in self._columns
            ]
            values = [value * self._weights[column] for column, value in known]
            length = float(np.sqrt(sum(value**2 for value in values))) or 1.0
            cells += [(column, value / length) for (column, _), value in zip(known, values, strict=True)]
            ends.append(len(cells))
        columns, values = [column for column, _ in cells], [value for _, value in cells]
        return sparse.csr_matrix(
            (np.array(values, dtype=np.float64), np.array(columns, dtype=np.int64), ends),
            shape=(len(texts), len(self._columns)),
        )


def _terms(text: str) -> Counter[str]:
    """Of the words and word pairs of a text."""
    words = "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()
    return Counter([*words, *(f"{first} {second}" for first, second in pairwise(words))])
