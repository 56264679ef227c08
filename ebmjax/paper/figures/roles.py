"""The roles that several figures share: SBC and EBM on the MNIST streams."""

from typing import Any

from ebmjax.paper.figures.spec import Role

STREAMS = {"split": ("splitmnist", 5), "permuted": ("permmnist", 10)}
NETWORKS = {  # name -> network, objective, variants
  "SBC": ("sbc", "ce", "sbc"),
  "SBC*": ("sbc", "contrastive", "contrastive,sbc"),
  "EBM": ("ebm", "contrastive", ""),
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


def config_file(name: str, variants: str) -> str:
  """Returns FILE[:variants] of ours, such as configs/splitmnist.py:sbc."""
  return f"configs/{name}.py" + (f":{variants}" if variants else "")


def mnist(network: str, stream: str, *, every: int = 0, ends: bool = True) -> Role:
  """Returns the role of a network ("SBC", "SBC*", "EBM") on a stream of MNIST.

  `every` is the eval.every that suits the figure; with `ends` a run must have been
  evaluated at the ends of its tasks.
  """
  file, tasks = STREAMS[stream]
  name, objective, variants = NETWORKS[network]
  keys = BASE | {"network.name": name, "objective": objective}
  keys |= {"data.name": "mnist", "stream.name": stream, "stream.tasks": tasks}
  if ends:
    keys["eval.at_task_ends"] = True
  chosen = config_file(file, variants)
  return Role(
    name=f"{network}, {stream}",
    says=f"{SPELLED.get(network, network)} on {stream} MNIST",
    keys=keys,
    chosen=chosen,
    make=f"python -m ebmjax.main --config={chosen}"
    + (f" --config.eval.every={every}" if every else ""),
    folder="-".join([file, *variants.split(",")]).strip("-"),
  )
