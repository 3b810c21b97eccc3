"""Whether an agent may do what it proposes: policy checks of the endpoint, and its reward where that is unsure.

The action is scored as the last step of the conversation, by the same path as any input; so it is counted, sampled and
compared in releases like one, with the flag guard_allow, guard_deny or guard_ask.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from apps.rewards.guard_log import Decision, GuardResult
from apps.rewards.serving.problems import Problem
from apps.rewards.serving.request_keys import GUARD_KEYS
from apps.rewards.serving.requests import ScoreRequest, check_keys, parse_tags, parse_version, read_document
from apps.rewards.serving.response import ScoreResponse
from workers.engine import ItemScore
from workers.engine.rules.policy_checks import CheckedRun, Violation
from workers.errors import InvalidRecord
from workers.schema import ScoreInput, Trajectory
from workers.schema.decode import require_list, require_object
from workers.schema.endpoints import EndpointSpec
from workers.schema.guards import GuardSettings
from workers.schema.policy_checks import PolicyCheck
from workers.schema.policy_part import PolicyChecks
from workers.schema.rendered_items import parse_scored_item

PROBABILITY = "violation probability"  # what decided, where checks are called by their names
_UNSURE = ("uncertain", "out_of_distribution")


def parse_guard(body: bytes, headers: Mapping[str, str]) -> ScoreRequest:
    """{"messages": [...], "action": a message of the assistant, or {"name", "arguments"}}. Raises InvalidRecord."""
    document = read_document(body)
    check_keys(document, GUARD_KEYS)
    messages = require_list(document.get("messages"), pointer="/messages")
    action = _action_message(require_object(document.get("action"), pointer="/action"))
    try:
        item = parse_scored_item({"messages": [*messages, action]}, pointer="")
    except InvalidRecord as error:
        at = f"/messages/{len(messages)}"
        if error.pointer is not None and error.pointer.startswith(at):
            raise type(error)(error.message, pointer=f"/action{error.pointer[len(at) :]}") from None
        raise
    content = item.content
    if not isinstance(content, Trajectory) or not content.steps or content.steps[-1].source != "agent":
        raise InvalidRecord(
            "must be what the agent does next: a message of the assistant.", pointer="/action"
        )
    return ScoreRequest(
        items=(item,),
        version=parse_version(document.get("version")),
        tags=parse_tags(document, headers),
        pointer=None,
        same_version=True,
    )


def decide(response: ScoreResponse) -> None:
    """In a parser thread: the response's `guards`, and the flag of each decision at its score. Raises Problem 422 for
    an endpoint that has nothing to decide by."""
    spec, checks = response.spec, policy_checks_of(response)
    assert spec is not None
    if not checks and spec.guard is None:
        raise Problem(
            "This endpoint has no policy checks and no guard settings; deploy a spec with a component of the type "
            "`policy_checks`, or with `guard`.",
            status=422,
        )
    response.guards = [
        _decision(spec, _violations(checks, item), score)
        for item, score in zip(response.sent_items, response.scores, strict=True)
    ]
    response.scores = [
        replace(score, flags=(*score.flags, f"guard_{result.decision}"))
        for result, score in zip(response.guards, response.scores, strict=True)
    ]


def _decision(spec: EndpointSpec, found: list[Violation], score: ItemScore) -> GuardResult:
    """The first that denies, else the first that asks. A check with a weight is evidence, and decides nothing alone."""
    weights = {} if spec.guard is None else spec.guard.check_weights
    decisive = [each for each in found if each.check.name not in weights]
    results = [_by_checks(decisive), _by_probability(spec.guard, found, score), _by_reward(spec, score)]
    made = [result for result in results if result is not None]
    chosen = next((result for result in made if result.decision == "deny"), made[0] if made else None)
    chosen = chosen or GuardResult(decision="allow")
    return msgspec.structs.replace(chosen, violations=_violation_rows(found))


def policy_checks_of(response: ScoreResponse) -> list[PolicyCheck]:
    assert response.spec is not None
    parts = [part for part in response.spec.components if isinstance(part, PolicyChecks)]
    return [check for part in parts for check in part.checks]


def guard_reply(response: ScoreResponse) -> dict[str, Any]:
    spec, (score,), (decision,) = response.spec, response.scores, response.guards
    settings = (spec.guard if spec is not None else None) or GuardSettings()
    return {
        "endpoint": response.endpoint,
        "version": response.version,
        **msgspec.structs.asdict(decision),
        "reward": score.reward,
        "flags": list(score.flags),
        "on_failure": settings.on_failure,
        "milliseconds": response.usage["milliseconds"],
    }


def _violations(checks: list[PolicyCheck], item: ScoreInput) -> list[Violation]:
    """Of the last step, which is the action."""
    content = item.content
    assert isinstance(content, Trajectory)
    run = CheckedRun(checks)
    for step in content.steps[:-1]:
        run.add(step)
    return run.violations(content.steps[-1])


def _by_checks(found: list[Violation]) -> GuardResult | None:
    if not found:
        return None
    first = next((each for each in found if each.check.effect == "deny"), found[0])
    return GuardResult(
        decision=first.check.effect,
        rule=first.check.name,
        reason=first.check.reason or first.reason,
    )


def _violation_rows(found: list[Violation]) -> list[dict[str, Any]]:
    return [
        {
            "rule": each.check.name,
            "effect": each.check.effect,
            "tool": each.tool,
            "call": each.call,
            "reason": each.reason,
        }
        for each in found
    ]


def _by_probability(
    settings: GuardSettings | None, found: list[Violation], score: ItemScore
) -> GuardResult | None:
    """The rewards of a model of violations are log-odds that none comes, with the median 0 and the spread 1."""
    if settings is None or not settings.has_probability:
        return None
    broken = list(
        dict.fromkeys(each.check.name for each in found if each.check.name in settings.check_weights)
    )
    value = None if settings.component is None else score.values[settings.component]
    chance = settings.probability(value, broken)
    bounds: tuple[tuple[Decision, float | None], ...] = (
        ("deny", settings.deny_above),
        ("ask", settings.ask_above),
    )
    for decision, bound in bounds:
        if bound is not None and chance >= bound:
            by = [] if settings.component is None else [settings.component]
            by += [f"broken: {', '.join(broken)}"] if broken else []
            return GuardResult(
                decision=decision,
                rule=PROBABILITY,
                reason=f"A violation has the probability {chance:.2f} ({bound:g} or more; {'; '.join(by)}).",
            )
    return None


def _by_reward(spec: EndpointSpec, score: ItemScore) -> GuardResult | None:
    settings = spec.guard
    if settings is None:
        return None
    if settings.ask_below is not None and score.reward < settings.ask_below:
        return GuardResult(
            decision="ask", reason=f"The reward {score.reward:.3g} is below {settings.ask_below:g}."
        )
    unsure = [flag for flag in _UNSURE if flag in score.flags]
    if settings.ask_when_uncertain and unsure:
        return GuardResult(
            decision="ask", reason=f"The reward is not sure of it: {', '.join(unsure).replace('_', ' ')}."
        )
    return None


def _action_message(action: Mapping[str, Any]) -> Mapping[str, Any]:
    """A call alone as the message of the assistant that makes it."""
    if "role" in action or "name" not in action:
        return action
    if unknown := next((key for key in action if key not in ("name", "arguments")), None):
        raise InvalidRecord(
            f"unknown key {unknown!r}; a call has name and arguments.", pointer=f"/action/{unknown}"
        )
    call = {"id": "action", "type": "function", "function": dict(action)}
    return {"role": "assistant", "content": None, "tool_calls": [call]}
