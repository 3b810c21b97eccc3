"""One module per feedback format. Adding one is a module with `read` and a line here."""

from collections.abc import Callable, Iterator
from typing import BinaryIO

from apps.annotation.feedback.incoming import Found
from apps.annotation.feedback.readers import (
    agentrx,
    alpaca_eval,
    answer_pairs,
    any_record,
    atif,
    autolibra,
    chatbot_arena,
    csv_table,
    fine_grained_rlhf,
    helpsteer,
    hh,
    nectar,
    oasst,
    otel,
    outcomes,
    pandalm,
    record_formats,
    safe_rlhf,
    shp,
    solution_steps,
    trainer_files,
    ultrafeedback,
    webgpt,
    who_and_when,
)

Reader = Callable[[BinaryIO], Iterator[tuple[int, Found]]]

READERS: dict[str, Reader] = {
    **record_formats.BY_FORMAT,
    "jsonl": any_record.read,
    "outcomes": outcomes.read,
    **trainer_files.BY_FORMAT,
    "csv": csv_table.read,
    "atif": atif.read,
    "otel": otel.read,
    "hh": hh.read,
    "fine-grained-rlhf": fine_grained_rlhf.read,
    "pandalm": pandalm.read,
    "who-and-when": who_and_when.read,
    "agentrx": agentrx.read,
    "autolibra": autolibra.read,
    "alpaca-eval": alpaca_eval.read,
    "ultrafeedback": ultrafeedback.read,
    "helpsteer": helpsteer.read,
    "helpsteer-preference": helpsteer.read_preference,
    "safe-rlhf": safe_rlhf.read,
    "nectar": nectar.read,
    "stack-exchange": nectar.read_stack_exchange,
    "shp": shp.read,
    "webgpt": webgpt.read,
    "chatbot-arena": chatbot_arena.read,
    "answer-pairs": answer_pairs.read,
    "oasst": oasst.read,
    "prm800k": solution_steps.read_prm800k,
    "math-shepherd": solution_steps.read_math_shepherd,
}
