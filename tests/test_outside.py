"""Components of another package: run to a page, and tested by the batteries."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from ebmjax import main, networks
from ebmjax.errors import ConfigError
from ebmjax.networks import NetworkSpec, from_functions
from ebmjax.testing import check_method, check_network
from tests.helpers import SPLIT, overrides, read_results, write_idx
from tests.outside import method, network

pytestmark = pytest.mark.usefixtures("no_plots")

METHOD = "--config.method.name=tests.outside.method:SPEC"
NETWORK = "--config.network.name=tests.outside.network:SPEC"


def run(folder: Any, *flags: str) -> int:
  """Returns the exit code of a small run, whose sizes `flags` may be of."""
  small = overrides(write_idx(folder / "data"))
  small = [flag for flag in small if "network.hidden" not in flag]
  start = [f"--config={SPLIT}:smoke", f"--workdir={folder / 'run'}"]
  return main.main([*start, *small, *flags])


def test_both_run_to_a_page(tmp_path):
  own = ["--config.method.strength=0.5", "--config.method.biases=False"]
  assert run(tmp_path, METHOD, NETWORK, *own, "--config.network.rank=6") == 0
  config = read_results(tmp_path / "run")["config"]
  assert config["method"] == {
    "name": "tests.outside.method:SPEC",
    "strength": 0.5,
    "follow": 1.0,
    "biases": False,
  }
  assert config["network"]["rank"] == 6
  assert "anchor" in (tmp_path / "run" / "report.html").read_text()


def test_a_data_set_and_a_metric_run_to_a_page(tmp_path):
  """Seven classes of 12 x 20 grey images, through a convolution."""
  flags = [
    f"--config={SPLIT}:smoke",
    f"--workdir={tmp_path}",
    "--config.data.name=tests.outside.dataset:SPEC",
    "--config.data.per_class=30",
    "--config.network.name=ebm_conv4",
    "--config.eval.metrics=('tests.outside.metric:METRIC',)",
    "--config.stream.tasks=3",
    "--config.stream.iterations=6",
    "--config.stream.batch_size=8",
  ]
  assert main.main(flags) == 0
  results = read_results(tmp_path)
  accuracies = results["accuracy_matrix"][0][-1]
  found = results["spread"]["mean"]
  assert found == pytest.approx(max(accuracies) - min(accuracies), abs=1e-3)
  assert len(results["class_names"]) == 7 and results["paper"] is None
  page = (tmp_path / "report.html").read_text()
  assert "columns" in page and "Spread of tasks" in page


@pytest.mark.parametrize(
  ("flags", "said"),
  [
    (
      ("--config.data.name=tests.outside.dataset:SPEC", "--config.data.per_clas=3"),
      "did you mean config.data.per_class?",
    ),
    (
      ("--config.eval.metrics=('tests.outside.metric:NO',)",),
      "tests.outside.metric has no NO",
    ),
    ((METHOD, "--config.method.strenght=1"), "did you mean config.method.strength?"),
    ((METHOD, "--config.method.folow=1"), "did you mean config.method.follow?"),
    ((NETWORK, "--config.network.ranks=6"), "did you mean config.network.rank?"),
    ((METHOD, "--config.method.follow=2.0"), "is too large; give 1.0 or less."),
    (("--config.method.name=tests.outside.method:NO",), "has no NO"),
    (("--config.method.name=tests.outside.network:SPEC",), "not MethodSpec"),
  ],
)
def test_what_is_wrong_is_refused_in_a_sentence(tmp_path, capsys, flags, said):
  assert run(tmp_path, *flags) != 0
  assert said in capsys.readouterr().err


def test_the_method_passes_the_battery():
  network = "tests.outside.network:SPEC"
  check_method(method.SPEC, network=network, strength=0.5, follow=0.5)


def test_the_network_passes_the_battery():
  check_network(network.SPEC, temperature=0.5)


def drifting(problem: Any) -> Any:
  """Returns a learner whose state becomes a float of another size with a step."""
  learner = method.anchor(problem)

  def step(state: Any, key: Any, batch: Any) -> Any:
    state, metrics = learner.step(state, key, batch)
    return state._replace(own=(state.own[0][None], state.own[1])), metrics

  return learner._replace(step=step)


def undocumented(problem: Any, *, strength: float = 1.0) -> Any:
  return method.anchor(problem, strength=strength)


@pytest.mark.parametrize(
  ("changes", "said"),
  [
    ({"make": drifting}, r"the state after a step: \.own\[0\] is float32\[\]"),
    ({"make": undocumented}, "the key strength has no help"),
    ({"boundaries": False}, "consolidates=True, but its spec boundaries=False"),
    ({"small": {"budget": 3}}, "small sets budget, which is not a key"),
    ({"exempt": {"unknown": "because"}}, "exempt names"),
  ],
)
def test_the_battery_says_what_is_wrong_with_a_method(changes, said):
  skipped = ["compiled_equals_eager", "seeds_are_independent"]
  spec = method.SPEC._replace(**changes)
  with pytest.raises(AssertionError, match=said):
    check_method(spec, exempt=dict.fromkeys(skipped, "slow"))


def same_for_all(inputs: Any, **keys: Any) -> Any:
  """Returns a network that does not look at the labels."""
  built = network.bilinear(inputs)

  def energies(
    params: Any, state: Any, x: Any, labels: Any, train: bool = False
  ) -> Any:
    return built.energies(params, state, x, 0 * labels, train)

  return built._replace(energies=energies)


@pytest.mark.parametrize(
  ("spec", "said"),
  [
    (network.SPEC._replace(num_features=lambda config: 3), "num_features says 3, but"),
    (network.SPEC._replace(accepts=lambda shape: len(shape) == 1), "say in `wants`"),
    (network.SPEC._replace(classifier="ebm"), "'ebm' is not a classifier"),
    (NetworkSpec(same_for_all, title="none"), "labels 0 and 1 have the same gradient"),
  ],
)
def test_the_battery_says_what_is_wrong_with_a_network(spec, said):
  with pytest.raises(AssertionError, match=said):
    check_network(spec)


def convolving(inputs: Any, **keys: Any) -> Any:
  """Returns a network of images that are not flat."""
  height, width, channels = inputs.shape

  def energies(kernel: Any, x: Any, labels: Any) -> Any:
    pooled = jnp.einsum("bhwc,cf->bf", x, kernel) / (height * width)
    return jnp.take_along_axis(pooled, labels, axis=1)

  return from_functions(
    lambda key: jax.random.normal(key, (channels, inputs.num_classes)),
    energies,
    inputs.num_classes,
    normalise=inputs.prepare,
  )


def misshapen(inputs: Any, **keys: Any) -> Any:
  """Returns a network with one energy for each row."""
  return from_functions(
    lambda key: jnp.zeros(()), lambda params, x, labels: x.sum(axis=1), 4
  )


IMAGES = NetworkSpec(
  convolving,
  title="convolving",
  takes_rows=False,
  accepts=lambda shape: len(shape) == 3,
  wants="images [H, W, C]",
)
FLAT = IMAGES._replace(takes_rows=True)
MISSHAPEN = NetworkSpec(misshapen, title="misshapen")


def test_a_network_is_given_images_as_its_spec_says():
  check_network(IMAGES)
  with pytest.raises(AssertionError, match="unless its NetworkSpec has takes_rows=Fal"):
    check_network(FLAT)


@pytest.mark.parametrize(
  ("name", "said"),
  [
    ("FLAT", r"fails on inputs of shape \(784,\) \(ValueError: .*reach .* as rows"),
    ("MISSHAPEN", r"returned \[2\] for labels \[2, 2\]: return one energy for each"),
  ],
)
def test_a_network_that_cannot_take_its_inputs_is_refused(name, said):
  path = f"tests.test_outside:{name}"
  with pytest.raises(ConfigError, match=said):
    networks.make(path, input_shape=(784,), num_classes=4)
