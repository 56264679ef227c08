"""The roles that several figures share: SBC and EBM on the MNIST streams."""

from typing import Any

from ebmjax.figures.spec import Role

STREAMS = {"split": ("splitmnist", 5), "permuted": ("permmnist", 10)}
NETWORKS = {  # name -> network, objective, usual negatives, variants
  "SBC": ("sbc", "ce", "all_seen", "sbc"),
  "SBC*": ("sbc", "contrastive", "one_of_task", "contrastive,sbc"),
  "EBM": ("ebm", "contrastive", "one_of_task", ""),
}
SPELLED = {"SBC*": "SBC with the contrastive objective (SBC*)"}
BASE: dict[str, Any] = {
  "method.name": "finetune",
  "stream.setting": "boundary_aware",
  "stream.scenario": "class",
  "data.images": 0,
  "data.memorise": False,
  "data.validation": 0,
}
USUAL: dict[str, Any] = {
  "stream.class_order": "fixed",
  "stream.iterations": 2000,
  "stream.batch_size": 128,
  "optimiser.learning_rate": 1e-4,
}


def mnist(network: str, stream: str, *, every: int = 0, ends: bool = True) -> Role:
  """Returns the role of a network ("SBC", "SBC*", "EBM") on a stream of MNIST.

  `every` is the eval.every that suits the figure; with `ends` a run must have been
  evaluated at the ends of its tasks.
  """
  file, tasks = STREAMS[stream]
  name, objective, negatives, variants = NETWORKS[network]
  keys = BASE | {"network.name": name, "objective": objective}
  keys |= {"data.name": "mnist", "stream.name": stream, "stream.tasks": tasks}
  if ends:
    keys["eval.at_task_ends"] = True
  chosen = f"configs/{file}.py" + (f":{variants}" if variants else "")
  return Role(
    name=f"{network}, {stream}",
    says=f"{SPELLED.get(network, network)} on {stream} MNIST",
    keys=keys,
    usual=USUAL | {"negatives": negatives},
    make=f"python -m ebmjax.main --config={chosen}"
    + (f" --config.eval.every={every}" if every else ""),
    folder="-".join([file, *variants.split(",")]).strip("-"),
  )
