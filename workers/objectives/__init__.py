"""Objectives, one file each. To add one: its file, and its line in OBJECTIVES."""

from workers.objectives.bradley_terry import CHOICES, BradleyTerry, PairTensors

OBJECTIVES = {"bradley_terry": BradleyTerry}

__all__ = ["CHOICES", "OBJECTIVES", "BradleyTerry", "PairTensors"]
