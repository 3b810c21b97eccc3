"""Runs as the messages of a chat, and as model APIs answer them."""

from apps.trajectories.formats.chat import (
    call_log,
    cassette,
    chatgpt_export,
    claude_export,
    gemini,
    interactions,
    model_response,
    model_stream,
    openai,
    prompt_response,
    ui_stream,
)

FORMATS = (
    ("ui-stream", "streams of Vercel's AI SDK", ui_stream),
    ("model-stream", "streamed answers of model APIs", model_stream),
    ("gemini-interactions", "interactions of Gemini's API", interactions),
    ("gemini", "Gemini requests and responses", gemini),
    ("model-response", "responses of model APIs", model_response),
    ("cassette", "cassettes of VCR with calls of model APIs", cassette),
    ("call-log", "logs and batches of calls of model APIs", call_log),
    ("chatgpt-export", "ChatGPT's export of conversations", chatgpt_export),
    ("claude-export", "Claude's export of conversations", claude_export),
    ("openai", "OpenAI chat messages", openai),
    ("prompt-response", "prompt and response", prompt_response),
)
