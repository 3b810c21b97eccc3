"""A penalty for saying the same again."""

import re
from collections.abc import Callable
from itertools import islice

from workers.engine.rules.agent_text import texts
from workers.schema import ScoreInput
from workers.schema.components import RepetitionPenalty
from workers.schema.model_score import ModelScore

_WORD = re.compile(r"\w+")


def rate(rule: RepetitionPenalty, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """-(n-grams that came before / all n-grams) over all the agent wrote: -1 to 0, 0 for fewer than n words.

    Yeo et al. (arXiv 2502.03373), section 4.3: the n-gram penalty, as a share of the whole.
    """
    seen: set[tuple[str, ...]] = set()
    repeated, total = [], 0
    for text in texts(item):
        words = [word.lower() for word in _WORD.findall(text)]
        grams = list(zip(*(islice(words, start, None) for start in range(rule.ngram)), strict=False))
        total += len(grams)
        again = 0
        for gram in grams:
            again += gram in seen
            seen.add(gram)
        repeated.append(again)
    return ModelScore.sum_of_steps([-again / total if total else 0.0 for again in repeated])
