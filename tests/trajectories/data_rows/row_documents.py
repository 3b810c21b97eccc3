"""A row of each format of data rows, in the shape of its published files; and the formats of feedback that read it."""

from typing import Any

ASK = {"role": "user", "content": "What color is the sky?"}
BLUE, GREEN = ({"role": "assistant", "content": f"It is {color}."} for color in ("blue", "green"))
_QUESTION = "Which is the largest planet of the solar system?"
_HUMAN = "\n\nHuman: Is tea healthy?\n\nAssistant:"
_MESSAGE = {"user_id": "u1", "lang": "en", "review_count": 3, "deleted": False, "emojis": {"+1": 2}}
_RATING = {"Rating": "4", "Rationale": "Follows the instruction closely."}
_RATED = {"Rating": "N/A", "Rationale": "Nothing to check here."}

ROWS: dict[str, Any] = {
    "answer-pairs": {
        "pair_id": "p1",
        "question": "Which colour has the sky?",
        "response_A": "It is blue.",
        "response_B": "It is green.",
        "label": "A>B",
    },
    "mt-bench": {
        "question_id": 101,
        "answer_id": "TFomie",
        "model_id": "gpt-4",
        "choices": [{"index": 0, "turns": ["The second place.", "The last place but one."]}],
        "tstamp": 1686286924.8,
    },
    "feedback": {
        "task": {"id": "t1", "instruction": "Greet."},
        "a": {"messages": [ASK, BLUE]},
        "b": {"messages": [ASK, GREEN]},
        "choice": "a",
        "annotator": "ann",
    },
    "atropos": {
        "tokens": [[1, 2, 3], [4, 5, 6]],
        "masks": [[-100, 2, 3], [-100, 5, 6]],
        "scores": [1.0, -1.0],
        "advantages": None,
        "ref_logprobs": None,
        "messages": [[ASK, BLUE], [ASK, GREEN]],
        "group_overrides": {"group_size": 2},
    },
    "slime": {
        "group_index": 7,
        "index": 57,
        "prompt": "<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n",
        "tokens": [11, 12, 13],
        "response": "It is 4 of course.",
        "response_length": 3,
        "label": "the number four",
        "reward": 1.0,
        "loss_mask": [1, 1, 1],
        "weight_versions": ["w1"],
        "rollout_log_probs": [-0.5, -0.25, -0.125],
        "status": "completed",
        "metadata": {"source": "gsm"},
    },
    "verifiers": {
        "example_id": 31,
        "prompt": [{"role": "system", "content": "Use tools."}, ASK],
        "completion": [
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"up": 1}'}}
                ],
            },
            {"role": "tool", "content": "blue light", "tool_call_id": "c1"},
            BLUE,
        ],
        "answer": "the color blue",
        "task": "colors",
        "reward": 0.75,
        "info": {"level": "easy"},
        "metrics": {"exact_match": 1.0},
        "token_usage": {"input_tokens": 31, "output_tokens": 17},
        "stop_condition": "no_tools_called",
    },
    "verl": {
        "input": "system\nYou are a helpful assistant.\nuser\nWhat is 2+2?\nassistant\n",
        "output": "It is 4.",
        "gts": "four",
        "score": 0.5,
        "step": 12,
        "acc": True,
        "data_source": "openai/gsm8k",
    },
    "hh": {
        "chosen": f"{_HUMAN} Yes, mostly it is.",
        "rejected": f"{_HUMAN} No idea about that.",
        "split": "train",
    },
    "preference": {
        "conversations": [{"from": "human", "value": "What color is the sky?"}],
        "chosen": {"from": "gpt", "value": "It is blue."},
        "rejected": {"from": "gpt", "value": "It is green."},
        "source": "colors",
        "score_chosen": 8.5,
    },
    "trl-stepwise": {
        "prompt": "Which is larger, 9.8 or 9.11?",
        "completions": ["Compare the tenths.", "So 9.11 is larger."],
        "labels": [True, False],
    },
    "helpsteer": {
        "prompt": "What are pants?\n<extra_id_1>Assistant\nClothes.\n<extra_id_1>User\nAnd shorts?\n",
        "response": "Short clothes.",
        "helpfulness": 3,
        "correctness": 4,
        "coherence": 4,
        "complexity": 1,
        "verbosity": 2,
    },
    "helpsteer-preference": {
        "domain": "general",
        "language": "english",
        "context": [ASK],
        "response1": "It is blue.",
        "response2": "It is green.",
        "overall_preference": -2,
        "individual_preference": [{"score": -2, "reasoning": "Response 1 is right.", "feedback1": "Right."}],
    },
    "safe-rlhf": {
        "prompt": "How do I open a lock?",
        "response_0": "With its key.",
        "response_1": "With a hammer.",
        "is_response_0_safe": True,
        "is_response_1_safe": False,
        "response_0_source": "Alpaca-7B",
        "response_1_source": "Alpaca2-7B",
        "better_response_id": 0,
        "safer_response_id": 0,
    },
    "ultrafeedback": {
        "source": "evol_instruct",
        "instruction": "Name a color of the sky.",
        "models": ["alpaca-7b", "gpt-4"],
        "completions": [
            {
                "model": "alpaca-7b",
                "principle": "honesty",
                "custom_system_prompt": "Be honest in what you say.",
                "response": "It is blue.",
                "annotations": {"honesty": _RATING, "truthfulness": _RATED},
                "overall_score": 7.5,
                "fine-grained_score": 4.0,
                "critique": "Good and short.",
            },
            {
                "model": "gpt-4",
                "principle": "helpfulness",
                "custom_system_prompt": "Be helpful.",
                "response": "It is often blue, and red at dawn.",
                "annotations": {"honesty": [_RATING | {"Rating": "5"}]},
                "overall_score": 9.0,
                "critique": "Complete.",
            },
        ],
        "correct_answers": ["None"],
    },
    "nectar": {
        "prompt": "\n\nHuman: Name a color of the sky.\n\nAssistant: ",
        "answers": [
            {"answer": "It is blue.", "model": "gpt-4", "rank": 1.0},
            {"answer": "It is green.", "model": "llama-2-7b", "rank": 2.0},
        ],
        "turns": 1,
        "num_responses": 2,
        "source": ["lmsys-chat-1m"],
    },
    "alpaca-eval": {
        "instruction": _QUESTION,
        "output_1": "It is Jupiter.",
        "generator_1": "baseline-model",
        "output_2": "It is Saturn.",
        "generator_2": "other-model",
        "dataset": "helpful_base",
        "annotator": "weighted_gpt4",
        "preference": 1.0004,
        "price_per_example": 0.01,
    },
    "pandalm": {
        "idx": 1,
        "instruction": "Name the largest planet.",
        "input": "of the solar system",
        "response1": "It is Jupiter.",
        "response2": "It is Saturn.",
        "annotator1": 0,
        "annotator2": 1,
        "annotator3": 2,
    },
    "shp": {
        "post_id": "qqbvi3",
        "domain": "askscience_train",
        "history": "Why is the sky blue in the day?",
        "human_ref_A": "Because of Rayleigh scattering.",
        "human_ref_B": "Because of the sea below it.",
        "labels": 1,
        "score_A": 52,
        "score_B": 13,
        "score_ratio": 4.0,
    },
    "webgpt": {
        "question": {"dataset": "eli5", "id": "5yg2s8", "full_text": "Why is the sky blue in the day?"},
        "quotes_0": {"title": ["Sky"], "extract": ["Air scatters light."]},
        "answer_0": "Because air scatters light [1].",
        "score_0": 0.5,
        "quotes_1": {"title": [], "extract": []},
        "answer_1": "Because of the sea below it.",
        "score_1": -0.5,
    },
    "chatbot-arena": {
        "question_id": "58210e39b3fd",
        "model_a": "chatglm-6b",
        "model_b": "koala-13b",
        "winner": "model_b",
        "judge": "arena_user_973",
        "conversation_a": [ASK, GREEN],
        "conversation_b": [ASK, BLUE],
        "turn": 1,
        "language": "English",
    },
    "oasst": {
        "message_tree_id": "tree-1",
        "tree_state": "ready_for_export",
        "prompt": _MESSAGE
        | {
            "message_id": "m-1",
            "text": "What color is the sky?",
            "role": "prompter",
            "replies": [
                _MESSAGE
                | {
                    "message_id": "m-2",
                    "parent_id": "m-1",
                    "text": "It is blue.",
                    "role": "assistant",
                    "rank": 0,
                    "labels": {"quality": {"value": 0.75, "count": 3}},
                    "replies": [],
                },
                _MESSAGE
                | {
                    "message_id": "m-3",
                    "parent_id": "m-1",
                    "text": "It is green.",
                    "role": "assistant",
                    "rank": 1,
                    "labels": {"quality": {"value": 0.25, "count": 3}},
                    "replies": [],
                },
            ],
        },
    },
    "stack-exchange": {
        "qid": 5,
        "question": "How do I open a lock that has no key?",
        "answers": [
            {"answer_id": 51, "author": "ann", "pm_score": 4, "selected": True, "text": "Call a locksmith."},
            {"answer_id": 52, "author": "bob", "pm_score": 1, "selected": False, "text": "Take a hammer."},
        ],
        "date": "2014/05/14",
        "metadata": ["https://diy.stackexchange.com/questions/5"],
    },
    "prm800k": {
        "labeler": "340d89bc",
        "timestamp": "2023-01-22T04:34:27",
        "generation": 9,
        "is_quality_control_question": False,
        "question": {
            "problem": "What is 2+3 times 4?",
            "ground_truth_answer": "fourteen",
            "pre_generated_steps": ["3 times 4 is 12.", "2+12 is 15.", "The answer is 15."],
            "pre_generated_answer": "fifteen",
        },
        "label": {
            "steps": [
                {
                    "completions": [{"text": "3 times 4 is 12.", "rating": 1, "flagged": False}],
                    "human_completion": None,
                    "chosen_completion": 0,
                },
                {
                    "completions": [
                        {"text": "2+12 is 15.", "rating": -1, "flagged": False},
                        {"text": "2+12 is 14.", "rating": 1, "flagged": False},
                    ],
                    "human_completion": None,
                    "chosen_completion": None,
                },
            ],
            "total_time": 278270,
            "finish_reason": "found_error",
        },
    },
    "math-shepherd": {
        "input": "Is 7 a prime? Step 1: It has no divisor below 3. ки\nStep 2: So it is not prime. ки",
        "label": "Is 7 a prime? Step 1: It has no divisor below 3. +\nStep 2: So it is not prime. -",
        "task": "GSM8K",
    },
    "prompt-completion": {
        "step": 5,
        "prompt": "What color is the sky?",
        "completion": "It is blue.",
        "accuracy_reward": 0.25,
        "advantage": -0.5,
    },
    "prompt-samples": {
        "prompt": "What color is the sky?",
        "responses": ["It is blue.", "It is green."],
        "rewards": [1.0, 0.0],
        "data_source": "colors",
    },
    "sharegpt": {
        "id": "identity_0",
        "conversations": [
            {"from": "human", "value": "Where is my order 7?"},
            {"from": "function_call", "value": '{"name": "look", "arguments": {"order": 7}}'},
            {"from": "observation", "value": '{"place": "Ulm"}'},
            {"from": "gpt", "value": "It is in Ulm."},
        ],
        "system": "You are a help desk.",
        "tools": '[{"name": "look", "description": "Looks for an order."}]',
    },
    "alpaca": {
        "instruction": "Name the largest planet.",
        "input": "of the solar system",
        "output": "It is Jupiter.",
        "history": [["Hello there.", "Good day."]],
        "system": "You know the planets.",
        "generator": "text_davinci_003",
    },
    "training-text": {
        "text": "<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\nIt is 4 of course.",
        "n_predicted": 18,
        "reward": 0.75,
        "model": "small-model",
        "group_id": "g7",
        "logprobs": [-0.25, -0.5],
    },
    "openrlhf": {
        "input": "<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n",
        "output": "It is 4 of course.",
        "reward": 0.125,
    },
}
# Of small rows whose other fields are labels, ids and numbers of tokens.
LEAST_READ = {
    "feedback": 0.4, "atropos": 0.2, "slime": 0.19, "hh": 0.0, "helpsteer": 0.25, "helpsteer-preference": 0.25,
    "ultrafeedback": 0.2, "webgpt": 0.23, "oasst": 0.1, "prm800k": 0.15, "math-shepherd": 0.0,
    "training-text": 0.2,
}  # fmt: skip
_KTO = {"messages": [ASK, BLUE], "label": True}
_TAGGED = {"instruction": "Name a color.", "input": "", "output": "Blue.", "kto_tag": False}
LABELLED: list[tuple[str, Any]] = [
    *(
        (name, ROWS[name])
        for name in (
            *("alpaca-eval", "ultrafeedback", "helpsteer", "helpsteer-preference", "safe-rlhf", "nectar"),
            *("stack-exchange", "shp", "webgpt", "chatbot-arena", "oasst", "prm800k", "math-shepherd", "hh"),
            *("pandalm", "trl-stepwise"),
        )
    ),
    ("trl", ROWS["preference"]),
    ("trl-unpaired", _KTO),
    ("trl-unpaired", _TAGGED),
]
