"""Whether an answer agrees with the other answers of its group, or with those to the same question in other words."""

from collections import Counter
from collections.abc import Sequence

from workers.engine.groups import named_groups
from workers.engine.rules.agent_text import agent_steps, message_of
from workers.errors import RewardError
from workers.schema import ScoreInput
from workers.schema.components import Agreement
from workers.schema.model_score import ModelScore
from workers.schema.patterns import compiled

TWIN = "twin"  # the key of `metadata` that names the group of the same question in other words


def rate(part: Agreement, items: Sequence[ScoreInput]) -> list[ModelScore]:
    """0 to 1, for the last step. The voters are the answers of the group that `metadata.twin` names, where the request
    has it; else the other answers of the item's own group: never its own. 0 without an answer or voters.

    `share`: of the voters who gave the same answer. `majority`: 1 for the answer that most gave, 1 / n for each of n
    that equally many gave. Co-Reward (Zhang et al., arXiv 2508.00410): the majority of one view labels the other.
    Raises RewardError at `/<index>`.
    """
    answers: list[str | None] = []
    for place, item in enumerate(items):
        try:
            answers.append(answer(part, item))
        except RewardError as error:
            raise error.at(f"/{place}") from None
    groups = named_groups(items)
    found = []
    for place, item in enumerate(items):
        twins = groups.get(str(item.metadata.get(TWIN)), [])
        own = groups.get(item.group, []) if item.group is not None else []
        voters = twins or [other for other in own if other != place]
        votes = Counter(vote for other in voters if (vote := answers[other]) is not None)
        value = agreement(answers[place], votes, part.vote)
        found.append(ModelScore.at_last_step(value, len(agent_steps(item))))
    return found


def agreement(own: str | None, votes: Counter[str], vote: str) -> float:
    """As `rate`."""
    if own is None or not votes:
        return 0.0
    if vote == "share":
        return votes[own] / votes.total()
    most = max(votes.values())
    winners = [name for name, count in votes.items() if count == most]
    return 1 / len(winners) if own in winners else 0.0


def answer(part: Agreement, item: ScoreInput) -> str | None:
    """The last agent message, or what the first group of `expression` (or all of it) matched last in it; None where it
    matches nothing. Case and spaces do not count."""
    text = message_of(agent_steps(item)[-1])
    if part.expression is not None:
        matches = list(compiled(part.expression).finditer(text))
        if not matches:
            return None
        text = next(iter(matches[-1].groups()), matches[-1][0]) or ""
    return " ".join(text.split()).casefold() or None
