import os

import gymnasium

key = os.environ["KEY"]
first, second = (
    {"prompt": "Where is my parcel?", "response": text} for text in ("It comes today.", "No idea.")
)
group = candidates = items = [first, second]
