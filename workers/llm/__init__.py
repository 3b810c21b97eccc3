"""Clients for large language models: one behind an OpenAI-compatible server, or one in a local folder."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMServer:
    """Where a language model is asked: by its address (base_url, as OpenAI's clients take it, mostly ending in /v1, and
    model), or in a folder of `save_pretrained`, here, on `device` (auto, cpu or cuda).

    answer_tokens: how long an answer may get. at_once: calls under way together. attempts: how often an item is asked
    before it has no answer. timeout: seconds of one call. retries: of a call that met no server, a busy one or a broken
    one; None for some. pictures: how many it reads in one question, 0 for none; picture_pixels: of their longer side.
    """

    base_url: str = ""
    model: str = ""
    folder: str = ""
    device: str = "cpu"
    answer_tokens: int = 4096
    at_once: int = 4
    attempts: int = 3
    timeout: float = 120.0
    retries: int | None = None
    pictures: int = 0
    picture_pixels: int = 768

    @property
    def name(self) -> str:
        """Of the model, for people and for knowing its answers again."""
        return self.model or self.folder
