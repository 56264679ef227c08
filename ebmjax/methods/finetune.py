"""Plain training on the stream, as it comes: the paper's EBM and SBC rows.

    theta <- theta - Adam(grad of mean_b loss(x_b, y_b))

Only the objective can protect old tasks: under cross-entropy over all seen classes, the
old ones are pushed down at every step and forgotten at once; under the contrastive
objective, a row changes only its true label and one other label of the batch.

State: params, the network's other variables, Adam's two moments (each as params).
"""

from ebmjax.methods import studies
from ebmjax.methods._gradient import gradient_learner
from ebmjax.methods.spec import MethodSpec
from ebmjax.types import Learner, Problem


def finetune(problem: Problem) -> Learner:
  """Returns the learner without any protection against forgetting."""
  return gradient_learner(problem)


FINETUNE = MethodSpec(
  finetune,
  title="fine-tuning",
  published={
    "splitmnist": studies.SCENARIOS_2019.setting("splitmnist"),
    "permmnist": studies.SCENARIOS_2019.setting("permmnist"),
    "cifar100": studies.REPLAY_2020.setting("cifar100"),
  },
)
