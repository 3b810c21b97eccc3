"""A judgement as a frozen dataset holds it, in words."""

from typing import Any

_CHOICES = {"a": "A is better", "b": "B is better", "tie": "Equally good", "both_bad": "Both are bad"}
_STRENGTHS = {1: "slightly", 2: "clearly", 3: "by far"}
_SHORT = 120


def sides_of(said: dict[str, Any]) -> list[str]:
    """Content hashes of its trajectories, in order."""
    if "trajectories" in said:
        return list(said["trajectories"])
    return [said[name] for name in ("a", "b", "trajectory") if name in said]


def in_words(said: dict[str, Any]) -> str:
    """What it says; a record as `workers.schema.storage.read_said` gives it."""
    words = _WORDS[said["kind"]](said)
    criterion = said.get("criterion")
    return f"{criterion}: {words}" if criterion else words


def _pairwise(said: dict[str, Any]) -> str:
    strength = said.get("strength", 1)
    how = f", {_STRENGTHS[strength]}" if said["choice"] in ("a", "b") else ""
    return _CHOICES[said["choice"]] + how


def _ranking(said: dict[str, Any]) -> str:
    return "Ranks " + ", ".join(str(rank) for rank in said["ranks"])


def _step(said: dict[str, Any]) -> str:
    labels = said.get("labels") or {}
    counts = {name: list(labels.values()).count(name) for name in ("good", "neutral", "bad")}
    words = [f"{n} {name}" for name, n in counts.items() if n]
    if said.get("has_first_error"):
        first = said.get("first_error")
        words.append("no error" if first is None else f"first error at agent step {first}")
    return "Steps: " + (", ".join(words) or "corrections only")


def _rubric(said: dict[str, Any]) -> str:
    low, high = said["scale"]
    return f"{said['value']:g} of {low:g} to {high:g}"


def _comment(said: dict[str, Any]) -> str:
    text = str(said["text"])
    return f"“{text if len(text) <= _SHORT else text[: _SHORT - 1] + '…'}”"


def _rating(said: dict[str, Any]) -> str:
    if said.get("rating") is None:
        return "Accepted" if said.get("accept") else "Rejected"
    low, high = said["scale"]
    return f"Rated {said['rating']:g} of {low:g} to {high:g}"


def _outcome(said: dict[str, Any]) -> str:
    reward = "" if said.get("reward") is None else f", reward {said['reward']:g}"
    return ("Succeeded" if said["success"] else "Failed") + reward


_WORDS = {
    "pairwise": _pairwise,
    "ranking": _ranking,
    "step": _step,
    "rubric": _rubric,
    "comment": _comment,
    "rating": _rating,
    "outcome": _outcome,
}
