"""The system's Chromium, without a window."""

import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
]


def find_chromium() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)
