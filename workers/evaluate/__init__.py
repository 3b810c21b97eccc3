"""How good a reward model is: metrics and reports."""

from workers.evaluate.comparison import compare
from workers.evaluate.judged import Judge
from workers.evaluate.preference import Prediction, accuracy_report
from workers.evaluate.report import evaluate, predict

__all__ = ["Judge", "Prediction", "accuracy_report", "compare", "evaluate", "predict"]
