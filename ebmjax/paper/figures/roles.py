"""The roles that several figures share: SBC and EBM on the MNIST streams."""

from ebmjax.paper.figures.spec import Role

STREAMS = {"split": "splitmnist", "permuted": "permmnist"}
VARIANTS = {"SBC": "sbc", "SBC*": "contrastive,sbc", "EBM": ""}
SPELLED = {"SBC*": "SBC with the contrastive objective (SBC*)"}


def config_file(name: str, variants: str) -> str:
  """Returns FILE[:variants] of ours, such as configs/splitmnist.py:sbc."""
  return f"configs/{name}.py" + (f":{variants}" if variants else "")


def mnist(network: str, stream: str, *, every: int = 0, ends: bool = True) -> Role:
  """Returns the role of a network ("SBC", "SBC*", "EBM") on a stream of MNIST.

  `every` is the eval.every that suits the figure; with `ends` a run must have been
  evaluated at the ends of its tasks.
  """
  file, variants = STREAMS[stream], VARIANTS[network]
  command = config_file(file, variants)
  return Role(
    name=f"{network}, {stream}",
    says=f"{SPELLED.get(network, network)} on {stream} MNIST",
    command=command,
    make=f"python -m ebmjax.main --config={command}"
    + (f" --config.eval.every={every}" if every else ""),
    folder="-".join([file, *variants.split(",")]).strip("-"),
    ends=ends,
  )
