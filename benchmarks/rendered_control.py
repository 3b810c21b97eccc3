"""CartPole and MountainCar as pictures: states that can be drawn at will, their frames, and captions made from them."""

import math
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from PIL import Image

Numbers = NDArray[np.float64]
Pixels = NDArray[np.uint8]
SIDE = 72  # pixels of a frame as it is kept
BACKGROUNDS = {
    "white": (255, 255, 255),
    "yellow": (255, 250, 190),
    "red": (255, 215, 215),
    "green": (215, 250, 215),
    "blue": (215, 225, 255),
}
UPRIGHT = 12 * math.pi / 180  # as CartPole's own limit
_NAMED = 0.25  # radians: what captions call upright


@dataclass(frozen=True)
class RenderedControl:
    """place: numbers of a state that its frame shows. draw: a state. caption: of a state. true_reward: of a state.
    goal, baseline: what pictures are compared with. steps: of an episode. rows: of a frame.
    units: what the numbers of an observation are divided by for a policy; () leaves them."""

    name: str
    environment: str
    draw: Callable[[np.random.Generator], Numbers]
    caption: Callable[[Numbers, random.Random], str]
    true_reward: Callable[[Numbers], float]
    goal: str
    baseline: str
    steps: int
    rows: tuple[int, int] = (0, 400)
    units: tuple[float, ...] = ()

    @cached_property
    def world(self) -> Any:
        """Without a limit of time. What ends an episode is not asked: where it would end, it goes on."""
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        return gymnasium.make(self.environment, render_mode="rgb_array").unwrapped

    def frame(self, state: Numbers, background: str = "white") -> Pixels:
        """[SIDE, SIDE, 3]: all that moves, without the empty rows above and below."""
        self.world.state = state
        seen = self.world.render()[slice(*self.rows)].astype(np.float64)
        coloured = (seen * np.array(BACKGROUNDS[background]) / 255.0).astype(np.uint8)
        return np.asarray(Image.fromarray(coloured).resize((SIDE, SIDE), Image.Resampling.BOX))

    def episode(self, weights: Numbers, seed: int, steps: int | None = None) -> list[Numbers]:
        """The states after each step of a linear policy: one way where weights . (state, 1) is above 0, else the
        other."""
        observed, _ = self.world.reset(seed=seed)
        last, states = self.world.action_space.n - 1, []
        for _ in range(self.steps if steps is None else steps):
            numbers = np.asarray(observed) / (self.units or 1.0)
            action = last if float(weights[:-1] @ numbers + weights[-1]) > 0 else 0
            observed, *_ = self.world.step(action)
            if hasattr(self.world, "steps_beyond_terminated"):
                self.world.steps_beyond_terminated = None  # CartPole's warning about what follows its end
            states.append(np.array(self.world.state, dtype=np.float64))
        return states


def _draw_cart(dice: np.random.Generator) -> Numbers:
    return np.array([dice.uniform(-2.2, 2.2), 0.0, dice.uniform(-math.pi / 2, math.pi / 2), 0.0])


def _cart_caption(state: Numbers, dice: random.Random) -> str:
    """A fifth of them say nothing of the pole, as captions of the web leave most of a picture out."""
    place, _, angle, _ = state
    where = ("at the left", "in the middle", "at the right")[int(np.digitize(place, (-0.8, 0.8)))]
    side = "left" if angle < 0 else "right"
    wide = "far " if abs(angle) > 0.9 else ""
    pole = "upright" if abs(angle) < _NAMED else f"leaning {wide}to the {side}"
    forms = (
        "a cart with a pole",
        f"a cart with a pole {where}",
        f"a cart with the pole {pole}",
        f"a cart with the pole {pole} {where}",
    )
    return dice.choices(forms, (1, 1, 4, 4))[0]


def _cart_reward(state: Numbers) -> float:
    return float(abs(state[2]) < UPRIGHT)


def _draw_car(dice: np.random.Generator) -> Numbers:
    return np.array([dice.uniform(-1.2, 0.6), 0.0])


def _car_caption(state: Numbers, dice: random.Random) -> str:
    place = state[0]
    names = (
        "high on the left hill",
        "low on the left hill",
        "at the bottom of the valley",
        "low on the right hill",
        "high on the right hill",
        "at the top of the right hill next to the flag",
    )
    where = names[int(np.digitize(place, (-0.95, -0.7, -0.35, -0.05, 0.4)))]
    return dice.choice(("a car in the mountains", f"a car {where}", f"a car in the mountains {where}"))


def _car_reward(state: Numbers) -> float:
    """0 at the flag, else -1, as the environment pays."""
    return 0.0 if state[0] >= 0.5 else -1.0


CONTROLS = {
    control.name: control
    for control in (
        RenderedControl(
            name="CartPole",
            environment="CartPole-v1",
            draw=_draw_cart,
            caption=_cart_caption,
            true_reward=_cart_reward,
            goal="a cart with the pole upright",
            baseline="a cart with a pole",
            steps=80,
            rows=(140, 340),
        ),
        RenderedControl(
            name="MountainCar",
            environment="MountainCar-v0",
            draw=_draw_car,
            caption=_car_caption,
            true_reward=_car_reward,
            goal="a car at the top of the right hill next to the flag",
            baseline="a car in the mountains",
            steps=200,
            units=(1.0, 0.07),  # speeds are at most 0.07
        ),
    )
}


@dataclass(frozen=True)
class Scene:
    """A state in front of a background, which has nothing to do with the reward."""

    state: Numbers
    background: str

    def caption(self, control: RenderedControl, dice: random.Random) -> str:
        """A third of them name the background."""
        caption = control.caption(self.state, dice)
        return f"{caption} on a {self.background} background" if dice.random() < 1 / 3 else caption


def drawn(control: RenderedControl, count: int, seed: int) -> tuple[list[Scene], list[Pixels]]:
    """Scenes and their frames."""
    dice = np.random.default_rng(seed)
    scenes = [Scene(control.draw(dice), str(dice.choice([*BACKGROUNDS]))) for _ in range(count)]
    return scenes, [control.frame(scene.state, scene.background) for scene in scenes]


def vocabulary(captions: Sequence[str]) -> list[str]:
    return sorted({word for caption in captions for word in caption.split()})
