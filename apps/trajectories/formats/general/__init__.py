"""Runs under names that many programs give to the same things; tried last, after the formats of single programs."""

from apps.trajectories.formats.general import (
    action_steps,
    prompt_answer,
    react_text,
    recorded_turns,
    search_samples,
    turn_lists,
)

FORMATS = (
    ("tree-of-thoughts", "logs of Tree of Thoughts", search_samples),
    ("action-steps", "steps of an action and what was observed (InterCode, ScienceWorld)", action_steps),
    ("react-text", "a run of ReAct as one text (FireAct, KnowAgent)", react_text),
    ("recorded-turns", "a prompt and the recorded turns of a model (DeerFlow)", recorded_turns),
    ("prompt-answer", "a prompt and an answer under other names", prompt_answer),
    ("turns", "conversations under other names (Taskmaster, ParlAI, SGD)", turn_lists),
)
