"""Runs as the messages of a chat."""

from apps.trajectories.formats.chat import openai, prompt_response

FORMATS = (
    ("openai", "OpenAI chat messages", openai),
    ("prompt-response", "prompt and response", prompt_response),
)
