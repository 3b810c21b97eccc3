"""Which role the name of a speaker means, as data of many programs have them: `Customer`, `support_bot`, `gpt-4o`."""

from workers.schema.message_shapes import ROLES
from workers.schema.patterns import TextPattern

_PEOPLE = frozenset(
    (
        *(
            "customer",
            "client",
            "worker",
            "usr",
            "seeker",
            "prompter",
            "visitor",
            "caller",
            "person",
            "human",
        ),
        *("user", "questioner", "apprentice", "patient", "attacker", "student", "interviewer", "buyer"),
        *("guest", "asker", "requester", "inquirer", "player", "learner", "passenger", "you", "me"),
    )
)
_MODELS = ("gpt", "chatgpt", "claude", "gemini", "llama", "mistral", "mixtral", "qwen", "deepseek", "grok")
_AGENTS = frozenset(
    (
        *("chatbot", "wizard", "operator", "recommender", "assistant", "agent", "bot", "model", "llm", "ai"),
        *("tutor", "therapist", "counselor", "counsellor", "copilot", "supporter", "responder", "advisor"),
        *_MODELS,
        *("target", "planner", "coder", "executor", "critic", "solver", "reviewer"),
    )
)
_SERVICE = frozenset(("service", "support", "care", "success"))  # of a customer: who says this is no customer
_SIMULATED = frozenset(("simulator", "simulated", "sim", "evaluator"))  # an agent that plays a person
_SYSTEMS, _ACTIONS = ("context", "persona", "instructions"), ("action",)
_OF_THINGS = frozenset(("model", "target", "tool", "function", "environment", "service", "care", "success"))
_WORDS = TextPattern(r"\pL+")
_LONGEST = 40  # characters of a name


def speaker_role(name: str) -> str:
    """user, assistant, system or tool; empty for a name that tells nothing, or both."""
    known = name.strip().lower()
    if known in _SYSTEMS or known in _ACTIONS:
        return "system" if known in _SYSTEMS else "tool"
    if known in ROLES:
        return ROLES[known]
    if not known or len(known) > _LONGEST:
        return ""
    words = {word[0] for word in _WORDS.finditer(known)}
    if len(words) > 4:
        return ""
    is_person, is_agent = bool(words & _PEOPLE), bool(words & _AGENTS)
    if is_person and words & _SIMULATED:
        return "user"
    if is_person and words & _SERVICE:
        return "assistant" if is_agent or len(words) > 1 else ""
    if is_person == is_agent:
        return ""
    return "user" if is_person else "assistant"


def is_model_name(word: str) -> bool:
    return word.lower().startswith(_MODELS)


def marked_role(name: str) -> str:
    """The role of a name that stands before a text, where most names are those of other things: only one all of
    whose words mean who speaks."""
    words = [word[0] for word in _WORDS.finditer(name.lower())]
    known = _PEOPLE | _AGENTS | _SERVICE | _SIMULATED | ROLES.keys()
    if not words or len(words) > 3 or not known.issuperset(words) or words[0] in _OF_THINGS:
        return ""
    return speaker_role(name)
