"""Evidence made for tests: behaviours whose words scatter and whose steps tell them apart, or the other way round."""

import numpy as np

from workers.induce.grounding import Evidence
from workers.induce.induction_files import Aspect
from workers.induce.step_features import DIMENSIONS, FLAGS, StepVectors, unit_rows

HIDDEN = 48


def evidence(
    *,
    behaviours: int = 4,
    trajectories: int = 60,
    phrases: int = 6,
    words: float = 0.6,
    seed: int = 0,
    signs: tuple[int, ...] = (1, -1),
) -> tuple[Evidence, list[int]]:
    """Each trajectory shows two behaviours, each in a step of its own, and both are said; the behaviour of each aspect.

    words: how far the phrases of a behaviour lie apart. Behaviour n is praised or blamed by signs[n % len(signs)].
    """
    dice = np.random.default_rng(seed)
    middle = unit_rows(dice.normal(size=(behaviours, HIDDEN)).astype(np.float32))
    said = unit_rows(
        (
            np.repeat(middle, phrases, axis=0) + words * dice.normal(size=(behaviours * phrases, HIDDEN))
        ).astype(np.float32)
    )
    done = unit_rows(
        dice.normal(size=(behaviours + 1, DIMENSIONS)).astype(np.float32)
    )  # the last: steps at large
    rows, of, index, aspects, text, where, truth, whose = [], [], [], [], [], [], [], []
    for run in range(trajectories):
        shown = dice.choice(behaviours, 2, replace=False)
        for step, behaviour in enumerate([behaviours, *shown]):
            rows.append(done[behaviour] + 0.05 * dice.normal(size=DIMENSIONS))
            of.append(run)
            index.append(step)
        for step, behaviour in enumerate(shown, start=1):
            phrase = int(behaviour) * phrases + int(dice.integers(phrases))
            aspects.append(
                Aspect(
                    trajectory=f"run-{run}",
                    behaviour=f"did {behaviour}",
                    feedback=f"phrase {phrase}",
                    sign=signs[int(behaviour) % len(signs)],
                    step=step,
                    chance=1.0,
                    comment=str(len(aspects)),
                )
            )
            text.append(said[phrase])
            where.append(len(rows) - 3 + step)
            whose.append(run)
            truth.append(int(behaviour))
    steps = StepVectors(
        actions=unit_rows(np.array(rows, dtype=np.float32)),
        observations=np.zeros((len(rows), DIMENSIONS), np.float32),
        flags=np.zeros((len(rows), len(FLAGS)), np.float32),
        trajectory=np.array(of),
        number=np.array(index),
    )
    step = np.array(where)
    return (
        Evidence(
            aspects=aspects,
            text=np.array(text, dtype=np.float32),
            actions=steps.actions[step],
            observations=steps.observations[step],
            flags=steps.flags[step],
            trajectory=np.array(whose),
            step=step,
            steps=steps,
            names=[f"run-{run}" for run in range(trajectories)],
            tasks=[f"task-{run // 2}" for run in range(trajectories)],
        ),
        truth,
    )
