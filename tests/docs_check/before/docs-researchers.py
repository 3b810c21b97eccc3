from torch import Tensor

from workers.objectives import Objective, ObjectiveBatch
from workers.schema.records import OutcomeRecord
