"""What changes language models, judges and their judgings."""

from apps.judges.services.judges import JudgeSpec, add_judge, lock_judge, remove_judge
from apps.judges.services.judgings import hand_in, keep_judged, retry_failed, start_judging, try_judge
from apps.judges.services.language_models import (
    MOST_ANSWER_TOKENS,
    MOST_CALLS,
    MOST_MODELS,
    LanguageModelSpec,
    add_language_model,
    change_language_model,
    keep_answers,
    remove_language_model,
    try_language_model,
)

__all__ = [
    "MOST_ANSWER_TOKENS",
    "MOST_CALLS",
    "MOST_MODELS",
    "JudgeSpec",
    "LanguageModelSpec",
    "add_judge",
    "add_language_model",
    "change_language_model",
    "hand_in",
    "keep_answers",
    "keep_judged",
    "lock_judge",
    "remove_judge",
    "remove_language_model",
    "retry_failed",
    "start_judging",
    "try_judge",
    "try_language_model",
]
