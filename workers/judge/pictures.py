"""How many pictures a judge may be shown."""

from workers.llm import LLMServer
from workers.prompts.pictures import PictureLimits


def picture_limits(server: LLMServer) -> PictureLimits:
    return PictureLimits(server.pictures, server.picture_pixels)
