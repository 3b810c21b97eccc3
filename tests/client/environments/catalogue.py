"""The environments that the installed packages register, and those of them that cannot start without more."""

from importlib import import_module, util
from pkgutil import walk_packages
from typing import Any

import gymnasium

# By the beginning of the name, or by the package that it says is missing.
NEEDS = {
    "mujoco": "MuJoCo, which is not among the development tools",
    "gymnasium-robotics": "the old versions of MuJoCo environments, which Gymnasium has given up",
    "gym compatibility": "shimmy, which wraps environments of the older gym",
    "highway_env": "the package highway-env",
    "gym_super_mario_bros": "the package gym-super-mario-bros",
    "jax": "JAX",
    "imageio": "the packages of minigrid[wfc]",
    "box2d": "Box2D, of which there is no wheel for each version of Python",
    "pygame": "pygame",
    "named 'chess'": "the package chess",
    "rlcard": "the package rlcard",
    "openspiel": "OpenSpiel",
    "edges": "a network of routes, which MOMAland 0.2.0 does not bring",
}
# These start, and their first step raises.
FAILING = {"momaland.envs.gem_mining.mogem_mining_v0": "an older numpy than 2.4"}
_REGISTERING = ("minigrid", "mo_gymnasium")
_PETTINGZOO = ("pettingzoo.classic", "mpe2", "momaland.envs")


def gymnasium_names() -> list[str]:
    for package in _REGISTERING:
        if util.find_spec(package):
            import_module(package)
    return sorted(gymnasium.registry)


def pettingzoo_names() -> list[str]:
    """Modules that have an `env`."""
    found: list[str] = []
    for name in _PETTINGZOO:
        if util.find_spec(name.partition(".")[0]) is None:
            continue
        package = import_module(name)
        modules = walk_packages(package.__path__, f"{name}.", onerror=lambda _: None)
        is_version = [module.name for module in modules if "_v" in module.name.rpartition(".")[2]]
        found += [module for module in is_version if module.count(".") <= name.count(".") + 2]
    return sorted(found)


def reason(error: BaseException) -> str | None:
    """Why an environment cannot start here; None of an error that is no missing package."""
    text = str(error).lower()
    return next((why for name, why in NEEDS.items() if name.lower() in text), None)


def start(name: str) -> Any:
    """Raises what starting it raises."""
    if name in gymnasium.registry:
        env = gymnasium.make(name, disable_env_checker=True)
    else:
        module = import_module(name)
        env = module.parallel_env() if hasattr(module, "parallel_env") else module.env()
    env.reset(seed=3)
    return env
