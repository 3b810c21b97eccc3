"""How good a reward model is: metrics and reports."""

from workers.evaluate.preference import Prediction, accuracy_report
from workers.evaluate.report import compare, evaluate, predict

__all__ = ["Prediction", "accuracy_report", "compare", "evaluate", "predict"]
