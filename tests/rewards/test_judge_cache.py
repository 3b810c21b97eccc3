"""What judges answered is kept within its bounds, by who answered."""

import threading

from apps.rewards.serving.judge_cache import JudgeCache


def test_answers_are_of_the_one_who_gave_them() -> None:
    kept = JudgeCache(10_000)
    one, other = kept.for_model("1"), kept.for_model("2")
    one.keep("a", {"score": 4}, {})
    assert one.get("a") == {"score": 4}
    assert other.get("a") is None and one.get("b") is None
    one.keep("a", {"score": 5}, {})
    assert one.get("a") == {"score": 5}


def test_the_oldest_use_goes_first() -> None:
    kept = JudgeCache(2000)
    for name in ("a", "b", "c"):
        kept.put(name, "x" * 300)
    assert kept.get("a") is not None
    kept.put("d", "x" * 300)
    assert kept.get("b") is None and kept.get("a") is not None
    assert kept.nbytes == 3 * (302 + 300) <= 2000
    kept.put("vast", "x" * 5000)
    assert kept.nbytes == 0 and kept.get("vast") is None


def test_threads_agree_on_the_size() -> None:
    kept = JudgeCache(20_000)

    def work(name: int) -> None:
        for number in range(300):
            kept.put(f"{name} {number % 50}", "x" * (number % 70))
            kept.get(f"{name} {number % 40}")

    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept.nbytes == sum(len(data) + 300 for data in kept._entries.values()) <= 20_000
