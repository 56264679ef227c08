"""Every method through the whole program: at boundaries, without them, and resumed."""

import contextlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from ebmjax import experiment
from ebmjax.config import flat_keys, loading, with_settings
from ebmjax.config.constraints import require_classes
from ebmjax.config.validation import resolve
from ebmjax.errors import ConfigError
from ebmjax.methods import METHODS
from tests.helpers import PERMUTED, SPLIT, TIMINGS, make_config, read_results, write_idx

pytestmark = pytest.mark.usefixtures("no_plots")

BASELINES = [method for method in METHODS if method != "finetune"]
# Those that need not be told where a task ends.
ANYWHERE = [m for m in BASELINES if METHODS[m].periodic or not METHODS[m].boundaries]
# Those that take the experiment's own network, and do not need a classifier.
ON_ENERGIES = [m for m in BASELINES if not METHODS[m].network and m != "icarl"]
# One for each kind of state: a penalty, a buffer, exemplars, a generator, moments. That
# of every method is saved and restored by its battery.
KILLED = ["online_ewc", "er", "icarl", "bir", "slda"]
# Those that no other test of this file runs; test_states.py trains every method on the
# classifier, with boundaries.
OTHERS = sorted(set(BASELINES) - {*KILLED, *ON_ENERGIES, *ANYWHERE})


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory) -> Path:
  return write_idx(tmp_path_factory.mktemp("data"))


def run(config: str, data_dir: Path, workdir: Path, **changes) -> dict:
  made = make_config(config, data_dir, method__mc_samples=2, **changes)
  if made.method.name in ("er", "gss_greedy", "icarl"):
    made.method.budget = 40
  experiment.run(made, workdir)
  results = read_results(workdir)
  for timing in TIMINGS:
    del results["facts"][timing]
  return results


@pytest.mark.parametrize("method", KILLED)
def test_a_killed_run_goes_on_as_if_nothing_had_happened(method, data_dir, tmp_path):
  """The last checkpoint that is left is the one of the boundary, consolidated."""
  config = f"{SPLIT}:{method},sbc,smoke"
  whole = run(config, data_dir, tmp_path / "run", seeds=2)
  assert whole["config"]["method"]["name"] == method
  boundary, end = sorted(int(p.name) for p in (tmp_path / "run/checkpoints").iterdir())
  assert end == whole["facts"]["steps"] == 2 * boundary
  shutil.rmtree(tmp_path / "run" / "checkpoints" / str(end))
  (tmp_path / "run" / "results.json").unlink()
  assert run(config, data_dir, tmp_path / "run", seeds=2) == whole


@pytest.mark.parametrize("method", OTHERS)
def test_on_the_classifier(method, data_dir, tmp_path):
  results = run(f"{SPLIT}:{method},sbc,smoke", data_dir, tmp_path)
  assert results["config"]["method"]["name"] == method
  assert results["average_accuracy"]["n"] == 1


@pytest.mark.parametrize("method", ON_ENERGIES)
def test_on_the_energy_network(method, data_dir, tmp_path):
  results = run(f"{PERMUTED}:{method},smoke", data_dir, tmp_path, eval__every=6)
  assert results["config"]["network"]["name"] == "ebm"
  assert results["average_accuracy"]["n"] == 1


@pytest.mark.parametrize("method", ANYWHERE)
def test_without_boundaries(method, data_dir, tmp_path):
  periodic = METHODS[method].periodic
  changes = {"method__consolidate_every": 5} if periodic else {}
  chosen = f"{SPLIT}:boundary_free,{method},sbc,smoke"
  assert (loading.load(chosen).method.get("consolidate_every", 0) > 0) == periodic
  results = run(chosen, data_dir, tmp_path, **changes)
  assert results["config"]["stream"]["setting"] == "boundary_free"
  assert results["facts"]["steps"] > 2 * 5  # periods that end


def test_a_period_that_would_never_end_is_refused(data_dir, tmp_path):
  with pytest.raises(ConfigError, match=r"run has 36 steps; give 36 or less\."):
    run(
      *(f"{SPLIT}:boundary_free,si,sbc,smoke", data_dir, tmp_path),
      method__consolidate_every=37,
    )


@pytest.mark.parametrize("variants", ["joint", "joint,sbc"])
def test_all_tasks_at_once(variants, data_dir, tmp_path):
  results = run(f"{SPLIT}:{variants},smoke", data_dir, tmp_path)
  assert results["facts"]["steps"] == 24
  # Both tasks are asked, and all classes are candidates, from the start.
  assert None not in results["accuracy_matrix"][0][0]


Keys = dict[str, object]

# What the studies say that the published figures come from, beside those below.
SPLIT_BY_VAN_DE_VEN: Keys = {
  "optimiser.learning_rate": 1e-3,
  "stream.class_order": "random",
  "stream.iterations": 2000,
  "stream.batch_size": 128,
}
PERMUTED_BY_VAN_DE_VEN: Keys = {
  "optimiser.learning_rate": 1e-4,
  "stream.iterations": 5000,
  "stream.batch_size": 128,
  "network.hidden": 1000,
}
CIFAR100_BY_VAN_DE_VEN: Keys = {
  "optimiser.learning_rate": 1e-4,
  "stream.class_order": "random",
  "stream.iterations": 5000,
  "stream.batch_size": 256,
}
FOUR_EPOCHS: Keys = {"stream.class_order": "fixed", "stream.iterations": 370}
NORMALISED: Keys = {"data.mean": (0.1,), "data.std": (0.2752,)}
SOURCES: dict[str, Keys] = {
  **{
    f"splitmnist.py:{method},sbc,source": SPLIT_BY_VAN_DE_VEN
    for method in ("ewc", "online_ewc", "si", "lwf", "icarl", "dgr", "bir")
  },
  **{
    f"permmnist.py:{method},sbc,source": PERMUTED_BY_VAN_DE_VEN
    for method in ("ewc", "online_ewc", "si", "lwf", "icarl", "dgr")
  },
  **{
    f"cifar100.py:{method},sbc,fixed,source": CIFAR100_BY_VAN_DE_VEN
    for method in ("ewc", "online_ewc", "si", "lwf", "bir")
  },
  "splitmnist.py:mas,sbc,source": {**FOUR_EPOCHS, "optimiser.learning_rate": 1e-3},
  "splitmnist.py:bgd,sbc,source": {
    **FOUR_EPOCHS,
    **NORMALISED,
    "network.init": "xavier_normal",
    "negatives": "all_classes",
    "method.std_init": 0.017,
  },
  "permmnist.py:bgd,sbc,source": {
    **NORMALISED,
    "stream.iterations": 4690,
    "stream.first_permutation": "identity",
    "network.init": "xavier_normal",
    "negatives": "all_classes",
    "method.std_init": 0.02,
  },
  "splitmnist.py:pgma,sbc,source": {
    "optimiser.learning_rate": 1e-3,
    "optimiser.b1": 0.5,
    "stream.batch_size": 100,
    "network.hidden": 600,
    "network.init": "small",
    "method.generator": "conv",
  },
  "cifar10.py:gss_greedy,sbc,source": {
    "optimiser.name": "sgd",
    "optimiser.learning_rate": 0.01,
    "stream.batch_size": 10,
    "stream.iterations": 1000,
    "network.name": "sbc_resnet18",
    "data.mean": (0.0, 0.0, 0.0),
    "data.std": (1.0, 1.0, 1.0),
    "data.augment": "none",
  },
}


# A strength goes with its Fisher information and its period.
CIFAR_STRENGTHS: dict[str, tuple[float, str, int]] = {
  "cifar10.py:online_ewc,sbc": (10.0, "expected", 1000),
  "cifar10.py:boundary_free,online_ewc,sbc": (1280.0, "batch", 1000),
  "cifar10.py:contrastive,ewc,sbc": (1e4, "batch", 0),
  "cifar10.py:contrastive,online_ewc,sbc": (3e4, "batch", 0),
  "cifar100.py:boundary_free,online_ewc,sbc": (1.0, "argmax", 1000),
}


@pytest.mark.parametrize("chosen", CIFAR_STRENGTHS)
def test_a_strength_on_cifar_goes_with_its_fisher_information(chosen):
  method = loading.load(str(Path(SPLIT).parent / chosen)).method
  found = (method.strength, method.fisher, method.fisher_samples)
  assert found == CIFAR_STRENGTHS[chosen]


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_si_without_boundaries_has_a_strength_of_its_own(name):
  file = str(Path(SPLIT).parent / f"{name}.py")
  chosen = (f"{file}:si,sbc", f"{file}:boundary_free,si,sbc")
  assert [loading.load(each).method.strength for each in chosen] == [1.0, 10.0]


@pytest.mark.parametrize("chosen", SOURCES)
def test_a_source_s_protocol(chosen):
  made = loading.load(str(Path(SPLIT).parent / chosen))
  if chosen.startswith("cifar100"):
    made.network.pretrained = "x.npz"
  found = flat_keys(resolve(made))
  assert {key: found[key] for key in SOURCES[chosen]} == SOURCES[chosen]


@pytest.mark.parametrize(
  ("variants", "scenario", "fits"),
  [
    ("er", "class", True),
    ("sbc", "class", True),
    ("sbc", "task", False),
    ("ctn,sbc", "class", False),
    ("bir", "class", False),  # old rows have a loss of their own
  ],
)
def test_single_classes_need_others_to_stand_against(variants, scenario, fits):
  made = loading.load(f"{SPLIT}:{variants}")
  made.stream.scenario = scenario
  made = resolve(made)
  require_classes(made, np.array([2, 2]))
  with contextlib.nullcontext() if fits else pytest.raises(ConfigError):
    require_classes(made, np.array([1, 1]))


@pytest.mark.parametrize(("file", "scenario"), [(SPLIT, "class"), (PERMUTED, "domain")])
def test_gss_s_own_protocol_shows_a_thousand_images_a_task_once(file, scenario):
  made = resolve(loading.load(f"{file}:gss_greedy,sbc,source"))
  assert made.stream.iterations * made.stream.batch_size == 1000
  assert (made.optimiser.name, made.network.init) == ("sgd", "xavier")
  assert (made.stream.scenario, made.negatives) == (scenario, "all_classes")


def test_ctn_s_own_protocol_tells_the_task_at_test_and_shares_ten_outputs():
  made = resolve(loading.load(f"{PERMUTED}:ctn,sbc,source"))
  assert (made.stream.scenario, made.stream.tasks) == ("task", 20)
  assert made.stream.iterations * made.stream.batch_size == 1000
  assert (made.network.hidden, made.network.context, made.network.init) == (
    256,
    16,
    "xavier",
  )
  assert made.method.budget == 50 * made.stream.tasks


@pytest.mark.parametrize("setting", ["boundary_aware", "boundary_free", "joint"])
@pytest.mark.parametrize("objective", ["contrastive", "likelihood"])
def test_gss_on_the_energy_network_finds_negatives_for_single_rows(setting, objective):
  changes = {"stream.setting": setting, "objective": objective}
  made = with_settings(loading.load(f"{SPLIT}:gss_greedy"), changes)
  one = (setting, objective) == ("boundary_aware", "contrastive")
  assert resolve(made).negatives == ("one_of_task" if one else "all_seen")


@pytest.mark.parametrize("network", ["ebm", "sbc"])
@pytest.mark.parametrize("method", ["ewc", "online_ewc"])
def test_the_paper_s_own_regularisers_have_the_released_code_s_fisher(method, network):
  """Its classifiers on the contrastive objective; the energy network is not held so."""
  variants = f"contrastive,{method}" + (",sbc" if network == "sbc" else "")
  made = loading.load(f"{SPLIT}:{variants}")
  assert made.network.name == network
  assert made.method.fisher == ("batch" if network == "sbc" else "argmax")
