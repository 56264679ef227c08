"""Plain training on the stream, as it comes: the paper's EBM and SBC rows.

    theta <- theta - Adam(grad of mean_b loss(x_b, y_b))

Nothing protects the past but the objective itself: under cross-entropy over all seen
classes the old ones are pushed down at every step and forgotten at once; under the
contrastive objective only the true label and one other of the batch are touched.

State: params, the network's other variables, Adam's two moments (each as params).
"""

from typing import Any

from ebmjax.methods._gradient import gradient_learner
from ebmjax.types import Learner, Problem


def finetune(problem: Problem, config: Any) -> Learner:
  """Returns the learner without any protection against forgetting."""
  del config  # it has no hyper-parameters of its own
  return gradient_learner(problem)
