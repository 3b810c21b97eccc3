"""The system's Chromium, without a window: the headless shell where it is installed, which has no window to draw.

A page in a fresh context took 0.15 s of CPU with it, and 0.5 s with `chromium --headless`.
"""

import shutil

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
]


def find_chromium() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)
