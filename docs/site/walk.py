"""A walk through the product as a moving picture: `make walk` writes docs/images/walk.webp.

It starts the demo in a temporary home, signs in as its annotator and its owner in headless Chromium, and keeps a
picture of each stop with a caption below it. Needs what the tests need: Chromium, playwright and Pillow.
"""

import argparse
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.chromium import FLAGS, find_chromium
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
WIDTH, HEIGHT, CAPTION = 1200, 720, 56
LARGEST = 3_000_000  # bytes


@dataclass
class Walk:
    """The pictures so far, with the seconds that each is shown."""

    frames: list[tuple[Image.Image, float]] = field(default_factory=list)

    def stop(self, page: Page, caption: str, seconds: float = 3.5) -> None:
        page.wait_for_load_state("networkidle")
        shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        frame = Image.new("RGB", (WIDTH, HEIGHT + CAPTION), "#1e1b4b")
        frame.paste(shot, (0, 0))
        font = ImageFont.load_default(22)
        ImageDraw.Draw(frame).text((24, HEIGHT + CAPTION / 2), caption, "#ffffff", font, anchor="lm")
        self.frames.append((frame, seconds))

    def save(self, path: Path) -> int:
        """Writes an animated WebP, with the best quality that fits into LARGEST. Returns its bytes."""
        first, *others = [frame for frame, _ in self.frames]
        durations = [round(seconds * 1000) for _, seconds in self.frames]
        for quality in (80, 65, 50, 35):
            first.save(
                path,
                save_all=True,
                append_images=others,
                duration=durations,
                loop=0,
                quality=quality,
                method=6,
            )
            if path.stat().st_size <= LARGEST:
                return path.stat().st_size
        raise SystemExit(f"{path} has {path.stat().st_size} bytes at the lowest quality; leave out stops.")


@contextmanager
def demo() -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a demo and its passwords by e-mail address."""
    with tempfile.TemporaryDirectory(prefix="walk-") as home:
        ports = [f"--port={free_port()}", f"--rewards-port={free_port()}"]
        environment = os.environ | {"TOUCHSTONE_HOME": home, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, str(ROOT / "manage.py"), "demo", *ports]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)  # noqa: S603
        try:
            yield _read_logins(process)
        finally:
            process.terminate()
            process.wait()


def _read_logins(process: subprocess.Popen[str]) -> tuple[str, dict[str, str]]:
    url, passwords = "", dict[str, str]()
    for line in process.stdout or ():
        if found := re.search(r"Touchstone is up at (\S+)", line):
            url = found[1]
        elif found := re.search(r"(\S+@sample\.example)\s+password (\S+)", line):
            passwords[found[1]] = found[2]
        if url and len(passwords) == 2:
            return url, passwords
    raise SystemExit("The demo ended before it was up; run `make demo` to see why.")


def signed_in(browser: Browser, url: str, email: str, password: str) -> Page:
    page = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light").new_page()
    page.goto(f"{url}/login")
    page.fill("#id_username", email)
    page.fill("#id_password", password)
    page.click("main button")
    page.wait_for_url(lambda found: "/login" not in found)
    return page


def record(browser: Browser, url: str, passwords: dict[str, str]) -> Walk:
    walk = Walk()
    annotate(walk, signed_in(browser, url, "annotator@sample.example", passwords["annotator@sample.example"]))
    research(walk, signed_in(browser, url, "owner@sample.example", passwords["owner@sample.example"]), url)
    return walk


def scroll_by(page: Page, pixels: int) -> None:
    """At once, and until what is new in view is drawn."""
    page.evaluate("pixels => window.scrollBy({top: pixels, behavior: 'instant'})", pixels)
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def annotate(walk: Walk, page: Page) -> None:
    walk.stop(page, "An annotator signs in and sees what there is to judge.")
    page.click("main a[href$='/work/']")
    page.wait_for_selector("#work")
    walk.stop(page, "Two trajectories of one task. Which is better?", 5)
    scroll_by(page, 500)
    walk.stop(page, "Tool calls and their results can be read step by step.", 4)
    page.keyboard.press("1")
    walk.stop(page, "One key answers; it can be changed until it is submitted.", 3)
    page.keyboard.press("Enter")
    page.wait_for_timeout(700)
    walk.stop(page, "Enter submits, and the next comparison is there.", 3)


def research(walk: Walk, page: Page, url: str) -> None:
    project = f"{url}/p/sample"
    for path, caption, seconds in (
        ("/", "The owner sees the whole loop on one page: feedback, datasets, models, endpoints.", 4),
        (
            "/trajectories/",
            "Every trajectory, with filters and search. Traces of 40 formats can be imported.",
            4,
        ),
        (
            "/campaigns/",
            "Campaigns ask for comparisons, rankings, ratings, scores, step labels and comments.",
            4,
        ),
        ("/campaigns/1/quality/", "Agreement between annotators, with intervals, and who is reliable.", 5),
        ("/datasets/new/", "Freezing splits the feedback by task into training, validation and test.", 4),
        ("/training/runs/1/", "A training run: what was learnt, and how long it took.", 4),
        ("/training/models/", "Models, each with its report.", 3),
    ):
        page.goto(project + path)
        walk.stop(page, caption, seconds)
    page.click("main table tbody a >> nth=0")
    walk.stop(page, "The report: accuracy on unseen tasks, with an interval, next to tuned baselines.", 5)
    for scroll, caption in (
        (700, "Against annotators: how often they agree with each other."),
        (800, "Where it fails."),
    ):
        scroll_by(page, scroll)
        walk.stop(page, caption, 4)
    page.goto(project + "/endpoints/sample/")
    walk.stop(page, "Deployed: trainers request rewards over HTTP, with the protocol they already use.", 5)
    page.goto(project + "/endpoints/sample/usage/")
    walk.stop(
        page, "What was requested, and what the endpoint was unsure of. That goes back to annotators.", 5
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/images/walk.webp")
    out = parser.parse_args().out
    with demo() as (url, passwords), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        walk = record(browser, url, passwords)
        browser.close()
    size = walk.save(out)
    seconds = sum(shown for _, shown in walk.frames)
    print(f"{out}: {len(walk.frames)} stops, {seconds:.0f} s, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
