"""What can be remarked about a conversation, where it shows, and several ways to say it."""

from dataclasses import dataclass

from apps.demo.agents import Conversation

CRITERIA = {
    "polite": "The agent stays courteous and takes the customer seriously.",
    "correct": "The right thing was done and what the reply says is true.",
    "efficient": "No look-up twice, no failed or pointless action.",
    "follows_policy": "The rules of the desk are kept, and checked before anything is changed.",
}

TEXTS: dict[str, tuple[str, ...]] = {
    "rude": (
        "The tone is insulting, nobody should talk to a customer like this.",
        "Right or wrong, this reply is rude.",
        "Snaps at the customer for no reason.",
        "No empathy at all, it even blames the customer.",
        "Unfriendly wording, I would not come back to this shop.",
    ),
    "violation": (
        "This breaks the policy, the tool even warned about it.",
        "Not allowed by the rules, and it went ahead anyway.",
        "An exception nobody authorised.",
        "Gives away money against the rules to please the customer.",
        "The rule on this is plain and was ignored.",
    ),
    "unwanted": (
        "Nobody asked for this change.",
        "That was done to the wrong order or without need.",
        "An unnecessary action that the shop will have to undo.",
        "Touches something it should have left alone.",
    ),
    "false": (
        "Where does this number come from? No tool said it.",
        "Made up. The conversation holds nothing that supports this statement.",
        "The reply claims things that did not happen.",
        "States facts without having looked them up.",
        "Hallucinated detail in the answer.",
    ),
    "blind": (
        "Acts before looking at the order.",
        "No check of the facts before it decides.",
        "Should have looked this up first.",
        "Guesses instead of using the tools.",
    ),
    "repeat": (
        "The same look-up again, it brings nothing new.",
        "Goes round in circles here.",
        "Repeats itself, a waste of a step.",
        "Asked this already one step before.",
    ),
    "error": (
        "This action could not work, the order does not exist.",
        "A failed call, sloppy.",
        "Wrong input to the tool.",
    ),
    "untold": (
        "The customer still does not know what happens with the {item}.",
        "Leaves out what matters: the amount, the date, the reason.",
        "Does not answer the question.",
        "Far too vague, I would have to write again.",
        "The reply says nothing of substance.",
    ),
    "undone": (
        "What the customer needed was never done.",
        "The actual problem is not solved.",
        "Ends without taking the step that was due.",
    ),
    "solved": (
        "Exactly the right step at the right time.",
        "This solves the problem, and within the rules.",
        "Correct decision for this case.",
        "Good: does what is due and no more.",
    ),
    "looked": (
        "Checks the facts before acting, good.",
        "Looks at the record first, that is how it should be.",
        "The right source to look at.",
        "Careful work: verifies before it decides.",
    ),
    "told": (
        "Clear answer with everything the customer has to know.",
        "Friendly and complete.",
        "Explains what happens next in plain words.",
        "Kind tone, concrete facts.",
        "A good reply: the what, the why and the when.",
    ),
    "plain": (
        "Nothing special, it does the job.",
        "Acceptable, though it could be warmer.",
        "So-so.",
    ),
}


@dataclass(frozen=True)
class Remark:
    """step: index over all steps, or None for the whole conversation."""

    about: str
    step: int | None
    sign: int | None


def notable(conversation: Conversation) -> list[Remark]:
    """What truly stands out, each at the step where it shows."""
    world, score = conversation.world, conversation.world.score
    places = agent_places(conversation)
    last = places[-1]
    found = _at_steps(conversation, places)
    faults = " ".join(score.faults)
    if "was rude" in faults:
        found.append(Remark("rude", last, -1))
    if "without ground" in faults:
        found.append(Remark("false", last, -1))
    if score.told < 0.5:
        found.append(Remark("untold", last, -1))
    elif score.told == 1.0 and "was rude" not in faults and "without ground" not in faults:
        found.append(Remark("told", last, 1))
    if score.goal < 0.5 and world.task.goal.effects:
        found.append(Remark("undone", None, -1))
    if score.groundwork < 1.0:
        found.append(Remark("blind", None, -1))
    return found or [Remark("plain", None, None)]


def mistaken(conversation: Conversation) -> list[Remark]:
    """What someone who did not read with care might say of any conversation."""
    places = agent_places(conversation)
    return [Remark("told", places[-1], 1), Remark("untold", places[-1], -1), Remark("looked", places[0], 1)]


def _at_steps(conversation: Conversation, places: list[int]) -> list[Remark]:
    found = []
    messages = [message for message in conversation.messages if message["role"] == "assistant"]
    results = {
        message["tool_call_id"]: message["content"]
        for message in conversation.messages
        if message["role"] == "tool"
    }
    seen: set[str] = set()
    wanted = {effect.kind for effect in conversation.task.goal.effects}
    for message, place, credit in zip(messages, places, conversation.world.credit, strict=True):
        for call in message.get("tool_calls", ()):
            observation, function = results[call["id"]], call["function"]
            done = f"{function['name']} {function['arguments']}"
            if observation.startswith("error:"):
                found.append(Remark("error", place, -1))
            elif "Warning:" in observation:
                found.append(Remark("violation", place, -1))
            elif done in seen:
                found.append(Remark("repeat", place, -1))
            elif credit < -0.1:
                found.append(Remark("unwanted", place, -1))
            elif credit > 0.05:
                found.append(Remark("solved" if function["name"] in wanted else "looked", place, 1))
            seen.add(done)
    return found


def agent_places(conversation: Conversation) -> list[int]:
    """The `step` index of every agent step: tool results are no steps of their own."""
    told = [message["role"] for message in conversation.messages if message["role"] != "tool"]
    return [index for index, role in enumerate(told) if role == "assistant"]
