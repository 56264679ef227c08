"""Every experiment as a program for NVIDIA GPUs and for TPUs, lowered without either.

Lowering to StableHLO needs no device. Compiling needs the platform's compiler: that for
TPUs comes with libtpu and works without a TPU, so it is tried where that is installed;
that for GPUs comes with the CUDA plugin and asks for a GPU.
"""

import importlib.util
import re
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from ebmjax.runtime import scan
from tests import programs

PLATFORMS = ("cuda", "tpu")
# Functions that run on the host in the middle of a step.
HOST = re.compile(r"callback|infeed|outfeed|stablehlo\.(send|recv)\b|xla_python|host_")
# Features and batch change places.
KERNEL_GRADIENT = "dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]"
CASES = [
  "splitmnist.py:smoke",
  "splitmnist.py:boundary_free,smoke",
  "splitmnist.py:icarl,sbc,smoke",
  "permmnist.py:smoke",
  "cifar10.py:smoke",
  "cifar100.py:smoke",
  "cifar100.py:fixed,smoke",
  "cifar100.py:si,sbc,smoke",
  "pretrain_cifar10.py:smoke",
  "capacity.py:smoke",
]
SMALL: dict[str, Any] = {"seeds": 2, "stream__batch_size": 16, "eval__batch_size": 20}
SMALL |= {"method__budget": 20}


class Program(NamedTuple):
  """One function of a run, lowered for one platform."""

  text: str  # StableHLO
  donated: list[bool]  # of each leaf of the states


@pytest.fixture(scope="module")
def trunk(tmp_path_factory) -> Path:
  return programs.write_trunk(tmp_path_factory.mktemp("trunk") / "trunk.npz")


@pytest.fixture(scope="module")
def as_on_an_accelerator():
  """Makes `auto` choose as it does on a GPU; what is computed stays on the CPU."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(jax, "default_backend", lambda: "gpu")
    yield


def spec_of(chosen: str, trunk: Path, **changes: Any) -> Any:
  if chosen.startswith("cifar100"):
    changes["network__pretrained"] = str(trunk)
  driver = scan.choose_driver("auto", jax.default_backend())
  return programs.spec_of(chosen, driver, **SMALL, **changes)


def lower(traced: Any, platform: str) -> Program:
  lowered = traced.lower(lowering_platforms=(platform,))
  states = lowered.args_info[0][0]
  return Program(lowered.as_text(), [leaf.donated for leaf in jax.tree.leaves(states)])


class Case(NamedTuple):
  """An experiment and its programs, by function and platform."""

  chosen: str
  programs: dict[tuple[str, str], Program]


@pytest.fixture(scope="module", params=CASES)
def case(request, trunk, as_on_an_accelerator) -> Case:
  spec = spec_of(request.param, trunk)
  assert spec.driver == "vmap"
  traced = programs.trace(spec)
  consolidates = any(name in request.param for name in ("icarl", "si,"))
  assert ("consolidate" in traced) is consolidates
  lowered = {
    (name, platform): lower(function, platform)
    for name, function in traced.items()
    for platform in PLATFORMS
  }
  return Case(request.param, lowered)


def test_no_step_asks_the_host(case):
  for name, program in case.programs.items():
    assert HOST.findall(program.text) == [], name


# Rows of images, gathered: of a batch or a block, [..., 784] or [..., 32, 32, 3].
IN_FLOAT = re.compile(r"stablehlo\.gather.*-> tensor<[\dx]*x(784|1024|32x32x3)xf32>")


def test_images_are_gathered_as_bytes(case):
  """Normalised images would be four times the bytes to look up."""
  if "fixed" in case.chosen or "capacity" in case.chosen:
    pytest.skip("a frozen trunk's features, or images made of numbers")
  for name, program in case.programs.items():
    assert IN_FLOAT.findall(program.text) == [], name
    if name[0] != "consolidate":  # which may look at no image
      assert re.search(r"stablehlo\.gather.*xui8>", program.text), name


def test_a_gather_of_floats_is_found():
  x, rows = jnp.zeros((9, 784)), jnp.zeros(4, jnp.int32)
  assert IN_FLOAT.search(jax.jit(lambda x, rows: x[rows]).lower(x, rows).as_text())


def test_no_number_is_of_double_precision(case):
  for name, program in case.programs.items():
    assert "f64" not in program.text, name


def test_states_are_donated(case):
  """Training needs room for one copy of the states, not for two."""
  for (function, platform), program in case.programs.items():
    assert set(program.donated) == {function != "evaluate"}, (function, platform)
    if function == "train":
      aliases = re.findall("tf.aliasing_output|jax.buffer_donor", program.text)
      assert len(aliases) == len(program.donated)


def test_seeds_run_side_by_side():
  assert [scan.choose_driver("auto", name) for name in ("gpu", "tpu")] == ["vmap"] * 2
  assert scan.choose_driver("auto", "cpu") == "map"


def test_convolutions_are_native(trunk, as_on_an_accelerator):
  """The program of `auto` is that of `native`, and not that of the CPU's form."""

  def train(form: str) -> str:
    spec = spec_of("cifar10.py:smoke", trunk, network__conv_form=form)
    return lower(programs.trace(spec, only_train=True)["train"], "cuda").text

  native, blocked = train("native"), train("blocked")
  assert train("auto") == native != blocked
  assert KERNEL_GRADIENT in native
  assert KERNEL_GRADIENT not in blocked


def test_trunks_are_convolutions(case):
  """Where a trunk is trained the gradient of its kernels is a convolution, too."""
  has_trunk = "cifar" in case.chosen and "fixed" not in case.chosen
  trains_trunk = has_trunk and "cifar100" not in case.chosen
  for (function, _), program in case.programs.items():
    if function != "consolidate":
      assert ("stablehlo.convolution" in program.text) is has_trunk
    assert (KERNEL_GRADIENT in program.text) is (trains_trunk and function == "train")


def test_what_is_lowered_is_meant_for_the_platform():
  """The checks above would be empty if all were lowered for the host."""

  @jax.jit
  def choose(x):
    return lax.platform_dependent(
      x, cpu=jnp.sin, cuda=jnp.cos, tpu=jnp.tanh, default=jnp.exp
    )

  traced = choose.trace(jnp.float32(0))
  found = [traced.lower(lowering_platforms=(name,)).as_text() for name in PLATFORMS]
  assert ["stablehlo.cosine" in found[0], "stablehlo.sine" in found[0]] == [True, False]
  assert ["stablehlo.tanh" in found[1], "stablehlo.sine" in found[1]] == [True, False]


def test_a_call_of_the_host_is_found():
  """The pattern must know what JAX writes for one."""

  def ask(x):
    shape = jax.ShapeDtypeStruct((), jnp.float32)
    return jax.pure_callback(lambda y: y, shape, x)

  assert HOST.search(jax.jit(ask).lower(jnp.float32(0)).as_text())


@pytest.mark.skipif(
  importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed"
)
@pytest.mark.parametrize(
  "chosen", ["splitmnist.py:ewc,sbc,smoke", "cifar10.py:smoke", "cifar100.py:smoke"]
)
def test_the_tpu_compiler_takes_it(chosen, trunk, as_on_an_accelerator):
  from jax.experimental import topologies

  here = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2")
  for traced in programs.trace(spec_of(chosen, trunk), device=here.devices[0]).values():
    compiled = traced.lower(lowering_platforms=("tpu",)).compile()
    assert compiled.memory_analysis().argument_size_in_bytes > 0
