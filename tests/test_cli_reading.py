"""The command line: what it means, and what it tells of itself."""

from pathlib import Path

import pytest

from ebmjax import main
from ebmjax.config import loading
from ebmjax.config.groups import keys_of
from ebmjax.config.validation import resolve
from ebmjax.data import DATASETS
from ebmjax.methods import METHODS
from ebmjax.methods.optimisers import OPTIMISERS
from ebmjax.networks import NETWORKS
from tests.helpers import PERMUTED, ROOT, SPLIT

SMOKE = f"--config={SPLIT}:smoke"


def test_help_lists_keys_and_variants(capsys):
  assert main.main(["--help"]) == 0
  printed = capsys.readouterr()
  assert printed.err == ""
  assert "--config=FILE[:variants]" in printed.out
  assert "--workdir=DIR" in printed.out
  assert "  --config.stream.tasks=5\n      number of tasks\n" in printed.out
  assert "  --config.optimiser.learning_rate=0.0001\n" in printed.out


def test_help_of_a_file_says_what_it_reproduces_and_its_values(capsys):
  assert main.main([f"--config={PERMUTED}:sbc", "-h"]) == 0
  out = capsys.readouterr().out
  assert "Permuted MNIST: ten tasks of all ten digits" in out
  assert "17.26 +- 0.19" in out
  assert "  --config.network.name='sbc'\n" in out
  assert "  --config.network.hidden=1000\n" in out
  assert "  --config.objective='ce'\n      training loss: contrastive," in out
  assert "config.network.gate" not in out  # a key of the energy network


def test_help_shows_the_keys_of_what_the_command_line_chooses(capsys):
  chosen = ["--config.method.name=si", "--config.stream.setting=boundary_free"]
  assert main.main(["ebmjax", SMOKE, *chosen, "--help"]) == 0
  out = capsys.readouterr().out
  assert "  --config.method.damping=0.1\n" in out
  assert (
    "config.stream.epochs_per_task" in out and "config.stream.iterations" not in out
  )


def test_every_key_of_every_component_has_a_line_of_help():
  for registry in (METHODS, NETWORKS, OPTIMISERS, DATASETS):
    for name, spec in registry.items():
      assert all(key.help for key in spec.keys.values()), name
  assert all(key.help for key in keys_of({}).values())


@pytest.mark.parametrize(
  ("file", "has", "lacks"),
  [
    (SPLIT, ("ewc", "icarl", "hsu", "smoke"), ("medium", "v1")),
    ("configs/capacity.py", ("large", "sbc"), ("boundary_free", "ewc")),
    ("configs/pretrain_cifar10.py", ("smoke",), ("sbc",)),
  ],
)
def test_help_of_a_file_lists_its_own_variants(file, has, lacks, capsys):
  assert main.main([f"--config={ROOT / file}", "--help"]) == 0
  told = capsys.readouterr().out.partition("Variants: ")[2].split(".")[0]
  names = told.replace("\n", " ").split(", ")
  assert set(has) <= set(names) and not set(lacks) & set(names)


@pytest.mark.parametrize(
  ("chosen", "workdir"),
  [
    ("configs/permmnist.py", "runs/permmnist"),
    ("configs/splitmnist.py:sbc", "runs/splitmnist-sbc"),
    ("configs/splitmnist.py:boundary_free,sbc", "runs/splitmnist-boundary_free-sbc"),
    ("elsewhere/mine.py:", "runs/mine"),
  ],
)
def test_default_workdir(chosen, workdir):
  assert loading.default_workdir(chosen) == workdir


@pytest.mark.parametrize(
  "arguments",
  [
    [f"--config={SPLIT}:smoke,sbc", "--config.seeds=3", "--workdir=here"],
    ["--config", f"{SPLIT}:smoke,sbc", "--config.seeds", "3", "--workdir", "here"],
    ["-config", f"{SPLIT}:sbc+smoke", "-config.seeds=3", "-workdir=here"],
    ["--workdir=here", "--config.seeds=3", f"--config={SPLIT}:sbc,smoke"],
  ],
)
def test_parse_reads_every_spelling(arguments):
  config, workdir = loading.parse(["ebmjax", *arguments])
  assert (config.seeds, config.network.name, config.objective) == (3, "sbc", "ce")
  assert (config.stream.tasks, config.network.hidden) == (2, 32)
  assert workdir == Path("here")


def test_parse_without_a_workdir_names_it_by_the_file():
  assert loading.parse(["ebmjax", SMOKE])[1] == Path("runs/splitmnist-smoke")


def test_truth_values_and_numbers_are_read_by_their_key_type():
  changes = ("network.skip=false", "optimiser.learning_rate=1", "data.require_full")
  given = [SMOKE, *(f"--config.{change}" for change in changes)]
  config, _ = loading.parse(["ebmjax", *given])
  assert config.network.skip is False
  assert config.data.require_full is True
  assert config.optimiser.learning_rate == 1.0
  assert isinstance(config.optimiser.learning_rate, float)


@pytest.mark.parametrize(
  ("chosen", "values"),
  [
    ("splitmnist.py:contrastive,ewc,sbc", {"strength": 1e4, "fisher": "batch"}),
    ("splitmnist.py:contrastive,ewc,sbc,hsu,domain", {"strength": 200.0}),
    ("splitmnist.py:boundary_free,online_ewc,contrastive,sbc", {"strength": 1e5}),
    ("cifar10.py:bgd,sbc", {"std_init": 0.015, "step_size": 10.0}),
  ],
)
def test_the_more_particular_variant_has_the_last_word(chosen, values):
  method = loading.load(str(ROOT / "configs" / chosen)).method
  assert {key: method[key] for key in values} == values


@pytest.mark.parametrize(
  ("arguments", "negatives"),
  [
    (["cifar100.py:joint_pairs", "network.pretrained=x.npz"], "repaired"),
    (["splitmnist.py:bgd,sbc"], "all_classes"),
    (["splitmnist.py:bgd,sbc", "stream.scenario=task"], "all_seen"),
  ],
)
def test_negatives_follow_objective_method_and_scenario(arguments, negatives):
  file, *keys = arguments
  chosen = [f"--config={ROOT / 'configs' / file}", *(f"--config.{key}" for key in keys)]
  config, _ = loading.parse(["ebmjax", *chosen])
  assert resolve(config).negatives == negatives


def test_a_choice_of_the_command_line_takes_what_the_file_says_of_it():
  """Fifty epochs are CIFAR-10's without boundaries; a method has its defaults."""
  file = f"--config={ROOT / 'configs' / 'cifar10.py'}:si"
  chosen = ["--config.stream.setting=boundary_free", "--config.method.name=bgd"]
  config, _ = loading.parse(["ebmjax", file, *chosen, "--config.method.std_init=0.5"])
  assert config.stream.epochs_per_task == 50 and "iterations" not in config.stream
  assert dict(config.method) == {
    **{"name": "bgd", "std_init": 0.5, "step_size": 1.0, "mc_samples": 10}
  }
  assert dict(config.optimiser) == {"name": "none"}
