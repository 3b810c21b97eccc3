"""How soon a long trajectory can be read, and how smoothly it scrolls, by Chromium's own performance timeline.

`python -m benchmarks.viewer [--json] [--quick]` prints {page: {first_content_ms, longest_task_ms, tasks_over_200_ms,
frames, steps}} for a trajectory of 600 steps and 5 MB, such a pair next to each other, and one of 50 MB: a whole
installation on a home of its own, headless Chromium. First content is painted after navigation began, the server's time
included; tasks are those of the main thread from then until the last step was scrolled to. A trajectory of 10,000 steps
is opened at its beginning and at its last step (a copied link, and an anchor alone): {page: {first_content_ms,
interactive_ms, step_ms}}, each the median of five; interactive is when the page is loaded and its main thread is idle,
step when the card of the step is in view.
"""

import argparse
import io
import json
import os
import sys
from random import Random
from statistics import median
from typing import Any

from playwright.sync_api import Page

from benchmarks.browsing import PASSWORD, signed_in

EMAIL = "rose@example.org"
STEPS, QUICK_STEPS = 600, 60
BYTES, QUICK_BYTES = 5_000_000, 300_000  # of a trajectory; the huge one has ten times as many
LONG_STEPS, OPENED = 10_000, 5  # steps of the long one, and how often it is opened
SLOW = 200  # milliseconds a task may take
OBSERVE = """() => {
  window.tasks = [];
  new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((one) => one.duration)))
    .observe({ type: "longtask", buffered: true });
}"""
FIRST = """() => new Promise((done) => new PerformanceObserver((list) => {
  const paint = list.getEntries().find((one) => one.name === "first-contentful-paint");
  if (paint) done(paint.startTime);
}).observe({ type: "paint", buffered: true }))"""
# When the page was idle first, and when the step that is waited for was in view; since the navigation began.
TIMES = """(id) => {
  window.times = {};
  addEventListener("load", () => requestIdleCallback(() => (times.interactive_ms ??= Math.round(performance.now()))));
  const look = () => {
    const box = document.getElementById(id)?.getBoundingClientRect();
    if (box && box.top < innerHeight && box.bottom > 0) times.step_ms = Math.round(performance.now());
    else requestAnimationFrame(look);
  };
  look();
}"""
OPENED_TIMES = """() => new Promise((done) => {
  const look = () => times.interactive_ms && times.step_ms ? done(times) : setTimeout(look, 20);
  look();
})"""
# A screen at a time, like a reader in a hurry; it ends when nothing more comes.
SCROLL = """() => new Promise((done) => {
  let frames = 0, still = 0, last = -1;
  const step = () => {
    window.scrollBy({ top: innerHeight * 0.8, behavior: "instant" });
    frames += 1;
    still = scrollY === last ? still + 1 : 0;
    last = scrollY;
    if (still > 60) done(frames); else setTimeout(() => requestAnimationFrame(step), 30);
  };
  step();
})"""


def documents(steps: int, size: int) -> list[dict[str, Any]]:
    """A run, one that differs from it in every tenth step, and one of ten times its size."""
    random = Random(0)
    words = [f"{random.choice('bcdfgklmnprst')}{random.choice('aeiou')}{n}" for n in range(2000)]

    def text(length: int) -> str:
        return " ".join(random.choices(words, k=max(1, length // 6)))

    def run(name: str, each: int) -> dict[str, Any]:
        messages = [{"role": "user", "content": f"**Find out** how {text(200)}"}]
        for number in range(steps // 2):
            call = {
                "id": str(number),
                "function": {"name": "bash", "arguments": json.dumps({"command": text(80)})},
            }
            rows = json.dumps({"rows": [{"id": n, "note": text(60)} for n in range(8)]})
            answer = rows if number % 3 == 0 else "\n".join(text(90) for _ in range(each // 60))
            messages += [
                {
                    "role": "assistant",
                    "content": f"I look at `{text(20)}` next.\n\n- {text(60)}",
                    "tool_calls": [call],
                },
                {"role": "tool", "tool_call_id": str(number), "content": answer},
                {"role": "user", "content": text(40)},
            ]
        return {
            "id": name,
            "task": {"id": "long"},
            "messages": [*messages, {"role": "assistant", "content": "Done."}],
        }

    each = size // (steps // 2)
    left = run("left", each)
    right = json.loads(json.dumps(left)) | {"id": "right"}
    for message in right["messages"][1::10]:
        message["content"] += f" {text(30)}"
    return [left, right, run("huge", 10 * each)]


def long_document(steps: int) -> dict[str, Any]:
    """Steps of a kilobyte, of which every hundredth fails."""
    lines = "\n".join(f"Line {number} of many lines of a file that an agent reads." for number in range(20))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read every file."}]
    for number in range((steps - 1) // 2):
        call = {
            "id": str(number),
            "function": {"name": "bash", "arguments": json.dumps({"command": f"cat {number}.txt"})},
        }
        missing = f"cat: {number}.txt: No such file or directory"
        messages += [
            {"role": "assistant", "content": f"File {number} is next.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": str(number), "content": lines if number % 50 else missing},
            {"role": "user", "content": f"{number}\n{lines}"},
        ]
    messages += [{"role": "assistant", "content": "Done."}] * (steps - 1 - 2 * ((steps - 1) // 2))
    return {"id": "long", "task": {"id": "long"}, "messages": messages}


def prepare(steps: int, size: int) -> dict[str, Any]:
    """Keys by name, sizes in bytes. In a process whose settings are those of the installation."""
    import django

    django.setup()
    from apps.accounts.services import create_project, create_user
    from apps.trajectories.models import Trajectory
    from apps.trajectories.services import import_trajectories

    rose, _ = create_user(email=EMAIL, password=PASSWORD)
    project = create_project(slug="desk", name="Desk", owner=rose)
    written = [*documents(steps, size), long_document(LONG_STEPS if steps == STEPS else QUICK_STEPS)]
    made = [json.dumps(document).encode() + b"\n" for document in written]
    import_trajectories(project=project, stream=io.BytesIO(b"".join(made)), by=None)
    sizes = dict(zip(("left", "right", "huge", "long"), map(len, made), strict=True))
    return {"keys": dict(Trajectory.objects.values_list("external_id", "pk")), "bytes": sizes}


def read(page: Page, url: str) -> dict[str, Any]:
    page.goto(url, wait_until="commit")
    first = page.evaluate(FIRST)
    page.locator(".step").first.wait_for()
    page.evaluate(OBSERVE)
    frames = page.evaluate(SCROLL)
    tasks = page.evaluate("window.tasks")
    return {
        "first_content_ms": round(first),
        "longest_task_ms": round(max(tasks, default=0)),
        f"tasks_over_{SLOW}_ms": sum(task > SLOW for task in tasks),
        "frames": frames,
        "steps": page.locator(".step").count(),
    }


def open_at(page: Page, url: str, step: str) -> dict[str, int]:
    """How soon the page can be read and used, and shows the step with this id: medians."""
    found: list[dict[str, int]] = []
    for _ in range(OPENED):
        opened = page.context.new_page()
        opened.set_default_timeout(60_000)
        opened.add_init_script(f"({TIMES})({step!r})")
        opened.goto(url, wait_until="commit")
        first = round(opened.evaluate(FIRST))
        found.append({"first_content_ms": first} | opened.evaluate(OPENED_TIMES))
        opened.close()
    return {name: int(median(times[name] for times in found)) for name in found[0]}


def measure(steps: int, size: int) -> dict[str, Any]:
    with signed_in(EMAIL, "benchmarks.viewer", str(steps), str(size)) as (page, url, prepared):
        page.set_default_timeout(300_000)
        keys, sizes = prepared["keys"], prepared["bytes"]
        paths = {
            "one": (f"{keys['left']}/", sizes["left"]),
            "a pair": (f"{keys['left']}/compare/{keys['right']}/", sizes["left"] + sizes["right"]),
            "huge": (f"{keys['huge']}/", sizes["huge"]),
        }
        base = f"{url}/p/desk/trajectories/"
        pk, last = keys["long"], (LONG_STEPS if steps == STEPS else QUICK_STEPS) - 1
        opened = {
            "long": open_at(page, f"{base}{pk}/", f"t{pk}-s0"),
            "long, link to the last step": open_at(
                page, f"{base}{pk}/?step={last}#t{pk}-s{last}", f"t{pk}-s{last}"
            ),
            "long, anchor of the last step": open_at(page, f"{base}{pk}/#t{pk}-s{last}", f"t{pk}-s{last}"),
        }
        read_to_the_end: dict[str, dict[str, Any]] = {
            name: read(page, base + path) | {"megabytes": round(size / 1e6, 1)}
            for name, (path, size) in paths.items()
        }
        return opened | read_to_the_end


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.viewer", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a short trajectory: does it run?")
    parser.add_argument("--prepare", type=int, nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.prepare:
        print(json.dumps(prepare(*asked.prepare)))
        return 0
    found = measure(QUICK_STEPS, QUICK_BYTES) if asked.quick else measure(STEPS, BYTES)
    if asked.json:
        print(json.dumps(found))
    else:
        for name, figures in found.items():
            print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in figures.items()))
    return 0


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
    sys.exit(main())
