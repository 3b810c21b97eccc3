import os
from pathlib import Path

from touchstone_client import Client

from docs.site.page_tree import blocks

client = Client(os.environ["URL"], "sample", key=os.environ["KEY"])
texts = [text for is_code, text in blocks(Path("docs/reward-design.md").read_text()) if is_code]
code = (
    next(text for text in texts if "def reward(trajectory)" in text).partition("\n")[2].rpartition("```")[0]
)
