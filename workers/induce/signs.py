"""Whether a point praises or blames: a logistic regression on sentence embeddings.

It is fitted on the sentences below, written for this purpose, and on the comments whose annotators said so themselves;
those count as much together as the sentences do, once there are as many. Where an annotator gave a sign to a comment of
several points it moves each of them by SAID, and does not settle them: "polite, but it never looked" is blame, and its
first half is none.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

Encode = Callable[[Sequence[str]], NDArray[np.float32]]
Numbers = NDArray[np.float64]
SURE = 0.6  # below it a point is neither
SAID = 2.0  # logits
PRAISE = (
    "Good.",
    "Well done.",
    "The answer is correct.",
    "Correct and complete.",
    "It solved the problem.",
    "The agent did exactly what was asked.",
    "Clear and helpful explanation.",
    "Polite and friendly reply.",
    "It checked the facts before acting.",
    "Nice that it verified the result.",
    "The right tool was used.",
    "Efficient: no wasted steps.",
    "It recovered well from the error.",
    "The reasoning is sound.",
    "The logic of the code is correct.",
    "The code works and is easy to read.",
    "I like how it asked before changing anything.",
    "It followed the instructions closely.",
    "This was a sensible plan.",
    "Great attention to detail.",
    "It found the page quickly.",
    "All requirements were met.",
    "It cites its sources properly.",
    "The summary is accurate.",
    "Safe and careful behaviour.",
    "It asked for confirmation, which is right.",
    "The approach is valid.",
    "It noticed the mistake and fixed it.",
    "A good choice.",
    "Everything the user needed was there.",
    "The tests pass.",
    "It kept to the rules.",
    "Excellent tone.",
    "It understood what the user wanted.",
    "The number is right.",
    "Does what it should.",
)
BLAME = (
    "Bad.",
    "This is wrong.",
    "The answer is incorrect.",
    "Incomplete answer.",
    "It did not solve the problem.",
    "The agent ignored what was asked.",
    "Confusing and vague explanation.",
    "Rude and unfriendly reply.",
    "It acted without checking the facts.",
    "It never verified the result.",
    "The wrong tool was used.",
    "Too many wasted steps.",
    "It got stuck after the error.",
    "The reasoning is flawed.",
    "The logic of the code is wrong.",
    "The code does not work and should be fixed.",
    "It changed things without asking.",
    "It did not follow the instructions.",
    "There was no plan at all.",
    "Careless about details.",
    "It could not find the page.",
    "A requirement was missed.",
    "It made up a source.",
    "The summary leaves out what matters.",
    "Risky and careless behaviour.",
    "It should have asked for confirmation.",
    "The approach cannot work.",
    "It repeated the same mistake again.",
    "A poor choice.",
    "The user still does not know the answer.",
    "The tests fail.",
    "It broke the rules.",
    "Terrible tone.",
    "It misunderstood what the user wanted.",
    "The number is wrong.",
    "It clicked the disabled button again.",
    "Too much autonomy.",
    "The function should return a list instead.",
    "An edge case is not handled.",
    "Hallucinated.",
)


class Signs:
    """vectors, signs: of points whose annotators gave them a sign, 1 or -1."""

    def __init__(self, encode: Encode, vectors: NDArray[np.float32], signs: Sequence[int]) -> None:
        own = encode([*PRAISE, *BLAME])
        said = np.array([1] * len(PRAISE) + [-1] * len(BLAME))
        given = vectors.reshape(len(signs), own.shape[1])
        share = np.full(len(signs), min(1.0, len(own) / max(len(signs), 1)))
        self._head = LogisticRegression(C=10.0, max_iter=1000).fit(
            np.concatenate([own, given]),
            np.concatenate([said, np.array(signs, dtype=int)]),
            sample_weight=np.concatenate([np.ones(len(own)), share]),
        )

    def __call__(self, vectors: NDArray[np.float32], said: Sequence[int | None]) -> Numbers:
        """[points]: the chance of praise. said: the sign of the whole comment, where its annotator gave one."""
        if not len(vectors):
            return np.zeros(0)
        logits = self._head.decision_function(vectors) + SAID * np.array([one or 0 for one in said])
        found: Numbers = 1 / (1 + np.exp(-logits))
        return found


def sign_of(praise: float) -> int:
    """1, -1, or 0: neither is sure."""
    return 1 if praise >= SURE else -1 if praise <= 1 - SURE else 0
