"""What an imported judge is asked, from a TOML file:

    mark = "Verdict:"          # what stands before the verdict; "" where the answer begins with it
    before_verdict = " "       # between the mark and the verdict
    critique_tokens = 512      # that may be written before the mark; 0 for a verdict at once

    [run]                      # about one trajectory
    system = "..."             # may be left out
    user = "... {{task}} ... {{answer}} ..."
    verdicts = ["good", "bad"] # for and against; or scale = ["1", "2", "3", "4", "5"], from the worst to the best

    [pair]                     # which of two is better; may be left out
    user = "... {{task}} ... {{answer_a}} ... {{answer_b}} ..."
    verdicts = ["A", "B"]

{{task}} and {{answer}} are plain text; {{run}}, {{a}} and {{b}} are trajectories as JSON lines, as Touchstone's own
judges see them.
"""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workers.errors import RewardError
from workers.prompts.templates import places_of, template_parts

MARK = "Verdict:"
DEFAULT_CRITIQUE_TOKENS = 512
_RUN_PLACES, _PAIR_PLACES = {"task", "answer", "run"}, {"task", "answer_a", "answer_b", "a", "b"}
_KEYS = {"mark": str, "before_verdict": str, "critique_tokens": int, "run": dict, "pair": dict}
_QUESTION_KEYS = ("system", "user", "verdicts", "scale")
_MOST_BYTES = 100_000
_MOST_CRITIQUE = 8192
_POINTER = "/options/prompts"


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """verdicts: for and against. scale: from the worst to the best, of numbers; one of the two is empty."""

    user: str
    system: str = ""
    verdicts: tuple[str, ...] = ()
    scale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgePrompts:
    """name: of the file, with the beginning of its SHA-256."""

    name: str
    run: JudgeQuestion
    pair: JudgeQuestion | None = None
    mark: str = MARK
    before_verdict: str = " "
    critique_tokens: int = DEFAULT_CRITIQUE_TOKENS

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "JudgePrompts":
        """Of a manifest."""
        pair = values["pair"]
        return cls(
            **dict(values)
            | {"run": _from_dict(values["run"]), "pair": None if pair is None else _from_dict(pair)}
        )


def own_prompts() -> JudgePrompts:
    """The questions that Touchstone asks the judges it trains."""
    questions = {}
    for name, verdicts in (("verdict_run", ("good", "bad")), ("verdict_pair", ("A", "B"))):
        system, user = template_parts(name)
        questions[name] = JudgeQuestion(user.replace("{{by}}\n", ""), system, verdicts)
    return JudgePrompts("Touchstone's own questions", questions["verdict_run"], questions["verdict_pair"])


def read_prompts(path: Path) -> JudgePrompts:
    """Raises RewardError naming the key that is wrong."""
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        raise RewardError(
            f"{path} is not a file of at most {_MOST_BYTES:,} bytes; name the TOML file of the judge's questions.",
            pointer=_POINTER,
        )
    data = path.read_bytes()
    try:
        values = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(path, f"it is not valid TOML: {error}") from None
    for key, value in values.items():
        if key not in _KEYS:
            raise _wrong(path, f"unknown key {key!r}; known are {', '.join(_KEYS)}")
        if type(value) is not _KEYS[key]:
            raise _wrong(path, f"{key} must be {_KEYS[key].__name__}")
    if "run" not in values:
        raise _wrong(
            path,
            "[run] is missing: an endpoint scores single trajectories, so the judge needs a question about one",
        )
    tokens = values.get("critique_tokens", DEFAULT_CRITIQUE_TOKENS)
    if not 0 <= tokens <= _MOST_CRITIQUE:
        raise _wrong(path, f"critique_tokens = {tokens}: 0 to {_MOST_CRITIQUE}")
    mark = values.get("mark", MARK)
    if mark != mark.strip():
        raise _wrong(path, f"mark = {mark!r} begins or ends with a space; put it into before_verdict")
    if tokens and not mark:
        raise _wrong(path, "a judge that writes a critique needs a mark before its verdict; set mark")
    pair = values.get("pair")
    return JudgePrompts(
        name=f"{path.name} {hashlib.sha256(data).hexdigest()[:8]}",
        run=_question(path, "run", values["run"], _RUN_PLACES),
        pair=None if pair is None else _question(path, "pair", pair, _PAIR_PLACES),
        **{key: values[key] for key in ("mark", "before_verdict", "critique_tokens") if key in values},
    )


def _question(path: Path, name: str, values: dict[str, Any], places: set[str]) -> JudgeQuestion:
    if unknown := [key for key in values if key not in _QUESTION_KEYS]:
        raise _wrong(path, f"unknown key {unknown[0]!r} in [{name}]; known are {', '.join(_QUESTION_KEYS)}")
    user, system = values.get("user", ""), values.get("system", "")
    if not isinstance(user, str) or not isinstance(system, str) or not user.strip():
        raise _wrong(path, f"[{name}] needs user, the text of the question, and may have system")
    found = {*places_of(user), *places_of(system)}
    if unknown := sorted(found - places):
        raise _wrong(
            path, f"[{name}] has the place {{{{{unknown[0]}}}}}; known are {', '.join(sorted(places))}"
        )
    shows = [{"answer", "run"}] if name == "run" else [{"answer_a", "a"}, {"answer_b", "b"}]
    for either in shows:
        if not found & either:
            raise _wrong(path, f"[{name}] shows no answer; put {{{{{min(either, key=len)}}}}} into user")
    return JudgeQuestion(user, system, *_answers(path, name, values))


def _answers(path: Path, name: str, values: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    verdicts, scale = values.get("verdicts", []), values.get("scale", [])
    words = [*verdicts, *scale] if isinstance(verdicts, list) and isinstance(scale, list) else [None]
    if not all(isinstance(word, str) and word for word in words):
        raise _wrong(path, f"verdicts and scale of [{name}] are lists of texts")
    if bool(verdicts) == bool(scale) or (verdicts and len(verdicts) != 2):
        raise _wrong(path, f"[{name}] needs verdicts, the words for and against, or a scale")
    if scale and name == "pair":
        raise _wrong(path, "a pair is answered by one of two verdicts, not on a scale")
    if scale and (len(scale) < 2 or not all(_is_number(point) for point in scale)):
        raise _wrong(path, f"the scale of [{name}] needs two numbers at least, from the worst to the best")
    return tuple(verdicts), tuple(scale)


def _is_number(text: str) -> bool:
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False


def _from_dict(values: Mapping[str, Any]) -> JudgeQuestion:
    return JudgeQuestion(values["user"], values["system"], tuple(values["verdicts"]), tuple(values["scale"]))


def _wrong(path: Path, why: str) -> RewardError:
    return RewardError(f"{path.name}: {why}.", pointer=_POINTER)
