"""Tokens, cost and latency of steps, where the trace states them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.trajectories.formats.stated import run_facts


@dataclass(frozen=True, slots=True)
class StepUsage:
    """cost: US dollars. seconds: how long it took. None: not stated."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None

    def __bool__(self) -> bool:
        return any(
            value is not None for value in (self.input_tokens, self.output_tokens, self.cost, self.seconds)
        )

    @property
    def cost_text(self) -> str:
        return "" if self.cost is None else format_money(self.cost)

    @property
    def seconds_text(self) -> str:
        return "" if self.seconds is None else format_duration(self.seconds)

    @property
    def tokens_text(self) -> str:
        """Such as `1,200 in, 80 out`."""
        named = ((self.input_tokens, "in"), (self.output_tokens, "out"))
        return ", ".join(f"{count:,} {name}" for count, name in named if count is not None)


@dataclass(frozen=True, slots=True)
class UsageSummary:
    """stated: how many steps state anything. slowest, costliest: the index of a step."""

    total: StepUsage
    stated: int
    slowest: tuple[int, StepUsage] | None
    costliest: tuple[int, StepUsage] | None


def stated_usage(*holders: Mapping[str, Any] | None) -> StepUsage:
    """Of the metrics of a step, or of the metadata of a trajectory: each of the first that states it."""
    facts = run_facts(*holders, *(holder.get("usage") for holder in holders if holder))
    usage = facts.get("usage", {})
    return StepUsage(
        usage.get("input_tokens"), usage.get("output_tokens"), facts.get("cost"), facts.get("seconds")
    )


def trajectory_usage(metadata: Mapping[str, Any]) -> StepUsage:
    """As the trace states it for the full trajectory."""
    atif = metadata.get("atif")
    final = atif.get("final_metrics") if isinstance(atif, dict) else None
    return stated_usage(metadata, final if isinstance(final, dict) else None)


def summarize_usage(metrics: Iterable[tuple[int, Mapping[str, Any]]]) -> UsageSummary | None:
    """metrics: of steps, by index. None where none states tokens, cost or latency."""
    found = [(index, usage) for index, step in metrics if (usage := stated_usage(step))]
    if not found:
        return None
    timed = [entry for entry in found if entry[1].seconds is not None]
    priced = [entry for entry in found if entry[1].cost is not None]
    return UsageSummary(
        StepUsage(
            _sum(usage.input_tokens for _, usage in found),
            _sum(usage.output_tokens for _, usage in found),
            _sum(usage.cost for _, usage in priced),
            _sum(usage.seconds for _, usage in timed),
        ),
        len(found),
        max(timed, key=lambda entry: entry[1].seconds or 0, default=None),
        max(priced, key=lambda entry: entry[1].cost or 0, default=None),
    )


def format_money(dollars: float) -> str:
    """$12.30, $0.0123: two decimals from ten cents on, else four."""
    return f"${dollars:,.2f}" if abs(dollars) >= 0.1 or not dollars else f"${dollars:.4f}"


def format_duration(seconds: float) -> str:
    """12 ms, 1.2 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _sum(numbers: Iterable[Any]) -> Any:
    stated = [number for number in numbers if number is not None]
    return sum(stated) if stated else None
