"""What a run says beforehand of its cost, and what it refuses to start with."""

import logging
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from ebmjax import EnergyClassifier
from ebmjax.errors import ConfigError
from ebmjax.runtime import cost, environment
from ebmjax.runtime.plan import make_plan


def make_forecast(
  every: int, at_task_ends: bool = True, inference: int = 10
) -> cost.Forecast:
  """Returns the forecast of two tasks of 50 steps, 10 classes and 200 test images."""
  config: Any = SimpleNamespace(
    eval=SimpleNamespace(every=every, at_task_ends=at_task_ends),
    checkpoint=SimpleNamespace(every=1000),
    stream=SimpleNamespace(setting="boundary_aware", scenario="class"),
  )
  stream = SimpleNamespace(
    labels=np.zeros((1, 2, 10)),
    test_rows=np.zeros((1, 2, 100)),
    classes=np.zeros((1, 2, 10)),
  )
  spec: Any = SimpleNamespace(config=config, stream=stream)
  budget = {"training_flops": 100 * 1000, "inference_flops": inference}
  return cost.Forecast(spec, make_plan(config, [50, 100]), budget, done=-1)


def test_the_plan_is_said(caplog):
  with caplog.at_level(logging.INFO, "ebmjax"):
    make_forecast(0).announce()
  (line,) = caplog.messages
  assert line == (
    "Plan for each seed: 100 steps; 3 evaluations of 600 images x 10 labels in all."
  )


@pytest.mark.parametrize(
  ("every", "at_task_ends", "told"),
  [
    (
      1,
      True,
      "about 2020.0 times the arithmetic of training; raise config.eval.every,",
    ),
    (0, True, "; config.eval.at_task_ends=False evaluates at the end alone."),
    (0, False, "1 evaluation of 200 images"),
    (0, False, "about 20.0 times the arithmetic of training.\n"),
  ],
)
def test_evaluations_that_cost_more_than_training_name_their_key(
  every, at_task_ends, told, caplog
):
  with caplog.at_level(logging.INFO, "ebmjax"):
    make_forecast(every, at_task_ends, inference=10_000).announce()
  assert told in caplog.text


def test_the_time_is_forecast_from_the_first_warm_chunk(caplog):
  forecast = make_forecast(0)
  with caplog.at_level(logging.INFO, "ebmjax"):
    forecast.trained(10, 90.0)
    assert not caplog.messages
    forecast.trained(10, 10.0)
    forecast.trained(10, 10.0)
  assert caplog.messages == ["About 86 s to go: 80 s of training, 6 s of evaluating."]


SMALL = {"network.num_features": 8}


@pytest.mark.parametrize(
  ("odd", "told"),
  [
    (
      lambda: jax.enable_x64(True),
      "JAX_ENABLE_X64 is True, and ebmjax computes with False",
    ),
    (lambda: jax.numpy_dtype_promotion("strict"), "PROMOTION is strict, .* unset it"),
  ],
)
def test_settings_that_no_learner_can_have_are_refused(odd, told):
  model = EnergyClassifier(settings=SMALL)
  with odd(), pytest.raises(ConfigError, match=told):
    environment.require_usual()
  with odd(), pytest.raises(ConfigError, match=told):
    model.fit(np.eye(12), np.arange(12) % 2)


def test_a_run_that_is_not_compiled_says_so(caplog):
  with jax.disable_jit():
    environment.require_usual()
  assert "JAX_DISABLE_JIT is set: no step is compiled" in caplog.text


def test_an_error_within_jax_names_the_cache(monkeypatch):
  values = environment.jax.config.values | {"jax_compilation_cache_dir": "/some/where"}
  monkeypatch.setattr(
    environment, "jax", SimpleNamespace(config=SimpleNamespace(values=values))
  )
  with pytest.raises(TypeError) as caught, environment.doubt_cache():
    jax.numpy.zeros("odd")
  assert "in /some/where were copied or exchanged, delete" in caught.value.__notes__[0]
