"""Step 1 of an induction: comments are split into points, each praise or blame.

A point is a sentence, an item of a list, or one side of a contrast ("polite, but it never looked the order up"), since
the two sides praise and blame different things. Sentences end as they do in most scripts (. ! ? and their fullwidth
forms, the danda, line breaks); a full stop within a number, a path, an abbreviation or a call ends none.

The sign of a point comes from a logistic regression on sentence embeddings. It is fitted on the sentences below,
written for this, and on the comments whose annotators gave a sign themselves; those have as much weight together as the
sentences, once there are as many. Where an annotator gave a sign to a comment of several points, it moves each of them
by SIGN_LOGITS, and does not settle them: "polite, but it never looked" is blame, and its first half is not.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression

from workers.induce.induction_files import Comment
from workers.induce.step_features import DoubleArray, Encode, FloatArray
from workers.schema.patterns import SPACE, PatternMatch, TextPattern

MAX_POINTS = 200  # points of one comment
MAX_POINT_LENGTH = 1000  # characters of one point
_MAX_COMMENT_LENGTH = MAX_POINTS * MAX_POINT_LENGTH  # characters of a comment; the rest is not looked at
# Whitespace that the expressions below would look through again from each of its characters.
_BLANK = TextPattern(rf"[{SPACE}]{{40,}}")
_ABBREVIATION_REACH = 20  # characters before an end among which an abbreviation is looked for
_MIN_WORDS = 2  # words; fewer are put to the point before
_SENTENCE_END = re.compile(
    r"(?:(?<=[.!?])|(?<=[.!?][\"')\]]))\s+(?=[\"'(\[]*[^\Wa-z_])|(?<=[。！？।])|[\r\n]+|(?<=;)\s+"
)
_LIST_MARK = re.compile(r"^\s*(?:[-*•‣]|\(?\d{1,2}[.)])\s+")
_CONTRAST = TextPattern(
    rf"(?i)(?:[,;:][{SPACE}]*|[{SPACE}]+[-–—][{SPACE}]*)"
    r"(but|however|although|though|yet|whereas|aber|jedoch|mais|pero|sin embargo)\b"
    rf"|[{SPACE}]+(but|however|whereas)\b"
)
_LEADING_WORD = re.compile(
    r"^(?:but|however|although|though|yet|whereas|and|also|aber|jedoch|mais|pero)\b[,:]?\s*", re.IGNORECASE
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|nr|fig|z\.b|bzw|dr|mr|mrs|ms)\.)$", re.IGNORECASE
)
SURE = 0.6  # below it a point is neither
SIGN_LOGITS = 2.0
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


@dataclass(frozen=True, slots=True)
class CommentPoint:
    """One point of a comment. sign: 1 praise, -1 blame, 0 neither."""

    comment: Comment
    text: str
    sign: int


def read_points(comments: Sequence[Comment], encode: Encode) -> tuple[list[CommentPoint], FloatArray]:
    """All points of all comments with their embeddings. A sign given to a comment of one point is kept as it is."""
    split = [(comment, split_into_points(comment.text)) for comment in comments]
    flat = [(comment, text, len(texts) == 1) for comment, texts in split for text in texts]
    vectors = encode([text for _, text, _ in flat])
    if not flat:
        return [], vectors
    known = [row for row, (comment, _, is_only) in enumerate(flat) if is_only and comment.sign]
    classifier = SignClassifier(encode, vectors[known], [flat[row][0].sign or 0 for row in known])
    praise = classifier.praise_probabilities(vectors, [comment.sign for comment, _, _ in flat])
    points = [
        CommentPoint(comment, text, comment.sign if is_only and comment.sign else sign_of_praise(probability))
        for (comment, text, is_only), probability in zip(flat, praise.tolist(), strict=True)
    ]
    return points, vectors


def split_into_points(comment: str) -> list[str]:
    """In their order; none of a comment without a word. Of longer ones than MAX_POINTS points the first."""
    found: list[str] = []
    for sentence in _split_sentences(_BLANK.sub(_collapse_blank, comment[:_MAX_COMMENT_LENGTH])):
        parts = _split_contrast(_LIST_MARK.sub("", sentence))
        for part in parts:
            point = _LEADING_WORD.sub("", part.strip(" \t,;:–—-")).strip()
            if not re.search(r"\w", point):
                continue
            if found and len(parts) == 1 and len(point.split()) < _MIN_WORDS and point.isascii():
                found[-1] = f"{found[-1]} {point}"
            else:
                found.append(point[:MAX_POINT_LENGTH])
            if len(found) == MAX_POINTS:
                return found
    return found


def _collapse_blank(blank: PatternMatch) -> str:
    return "\n" if "\n" in blank[0] or "\r" in blank[0] else " "


def _split_contrast(sentence: str) -> list[str]:
    """Cut before each word of contrast, which begins the next side."""
    sides, begins = [], 0
    for found in _CONTRAST.finditer(sentence):
        sides.append(sentence[begins : found.start()])
        begins = max(found.start(1), found.start(2))
    return [*sides, sentence[begins:]]


def _split_sentences(comment: str) -> list[str]:
    """Abbreviations put together with what follows them."""
    out: list[str] = []
    for piece in _SENTENCE_END.split(comment):
        if out and _ABBREVIATION.search(out[-1][-_ABBREVIATION_REACH:]):
            out[-1] = f"{out[-1]} {piece}"
        elif piece and piece.strip():
            out.append(piece)
    return out


class SignClassifier:
    """vectors, signs: of points whose annotators gave them a sign, 1 or -1."""

    def __init__(self, encode: Encode, vectors: FloatArray, signs: Sequence[int]) -> None:
        examples = encode([*PRAISE, *BLAME])
        example_signs = np.array([1] * len(PRAISE) + [-1] * len(BLAME))
        given = vectors.reshape(len(signs), examples.shape[1])
        share = np.full(len(signs), min(1.0, len(examples) / max(len(signs), 1)))
        self._head = LogisticRegression(C=10.0, max_iter=1000).fit(
            np.concatenate([examples, given]),
            np.concatenate([example_signs, np.array(signs, dtype=int)]),
            sample_weight=np.concatenate([np.ones(len(examples)), share]),
        )

    def praise_probabilities(self, vectors: FloatArray, comment_signs: Sequence[int | None]) -> DoubleArray:
        """[points]. comment_signs: of the whole comment of each point, where its annotator gave one."""
        if not len(vectors):
            return np.zeros(0)
        given = SIGN_LOGITS * np.array([sign or 0 for sign in comment_signs])
        logits = self._head.decision_function(vectors) + given
        found: DoubleArray = 1 / (1 + np.exp(-logits))
        return found


def sign_of_praise(probability: float) -> int:
    """1, -1, or 0: neither is sure."""
    return 1 if probability >= SURE else -1 if probability <= 1 - SURE else 0
