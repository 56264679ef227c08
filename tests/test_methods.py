"""One battery for every method: a new one is tested by being in the table."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import methods
from ebmjax.methods import METHODS, Plugin, buffers, gradient_learner
from ebmjax.methods._gradient import all_energies
from ebmjax.testing.keys import reuses_key
from ebmjax.testing.methods import CHECKS, SGD, check_spec, make_problem, train
from ebmjax.testing.tasks import CLASSES, SIZE, batch_at
from tests.trials import make, trial_of

# Checks of the method alone: on its first network, for these take longest.
ONCE = (
  "compiled_equals_eager",
  "resumes_from_a_checkpoint",
  "seeds_are_independent",
  "uses_each_key_once",
)
# (method, network[, objective, negatives])
CASES: list[tuple[str, ...]] = [
  ("finetune", "ebm", "joint_pairs", "repaired"),
  ("finetune", "ebm", "joint_triples", "label_and_image"),
  ("finetune", "ebm", "likelihood", "all_of_batch"),
  ("finetune", "sbc", "contrastive", "one_of_batch"),
]
CASES += [(name, spec.network or "sbc") for name, spec in METHODS.items()]
# Those whose own losses ask the network for energies. A penalty on the weights does not
# see the network; whole runs try it on this one, too (test_experiment_methods.py).
CASES += [(name, "ebm") for name in ("finetune", "lwf", "er")]
# Those that generate images, or take gradients of single rows, compile for long.
SLOW = {m for m, s in METHODS.items() if s.own_objective or s.small or s.single_rows}


def applies(case: tuple[str, ...], check: str) -> bool:
  """Whether a check can find something in this case that it does not find in others."""
  spec, finetunes = METHODS[case[0]], case[0] == "finetune"
  if check in spec.exempt or (check == "compiled_equals_eager" and case[0] in SLOW):
    return False  # op by op, they compile hundreds of programs
  # An objective draws its negatives with keys, too.
  drawn = finetunes and check in ("seeds_are_independent", "uses_each_key_once")
  return check not in ONCE or drawn or case[1:] == (spec.network or "sbc",)


@pytest.mark.parametrize(
  ("case", "check"),
  [
    pytest.param(case, check, id="-".join((*case, check)))
    for case in CASES
    for check in CHECKS
    if applies(case, check)
  ],
)
def test_battery(case, check):
  CHECKS[check](trial_of(case))


@pytest.mark.parametrize("method", METHODS)
def test_spec(method):
  spec = METHODS[method]
  check_spec(spec)
  assert set(spec.exempt) <= set(CHECKS)


def test_a_method_can_be_made_without_a_configuration():
  problem = make_problem(trial_of(("ewc", "sbc")), SGD)
  learner = methods.make("ewc", problem, strength=3)
  train(learner, jax.jit(learner.init)(jax.random.key(0)), 1)
  with pytest.raises(TypeError, match="strenght"):
    methods.make("ewc", problem, strenght=3)


def test_a_key_that_is_used_twice_is_found_even_in_what_was_traced_before():
  def twice(key):
    return jax.random.normal(key) + jax.random.uniform(key)

  jax.jit(twice).trace(jax.random.key(0))
  assert reuses_key(twice, jax.random.key(0))


def test_contrastive_learning_leaves_absent_classes_embeddings_alone():
  """Old classes are not suppressed: only the two labels' rows get a gradient."""
  learner = make(("finetune", "ebm", "contrastive", "one_of_batch"), SGD)
  state = learner.init(jax.random.key(0))
  after = train(learner, state, 5)
  before, now = (
    np.asarray(s.params["label_gate"]["embedding"]) for s in (state, after)
  )
  np.testing.assert_array_equal(before[2:], now[2:])
  assert (before[:2] != now[:2]).any(axis=1).all()


def test_cross_entropy_pushes_seen_classes_down():
  """The mechanism of forgetting: a seen class absent from the batch loses its bias."""
  learner = make(("finetune", "sbc"), SGD)
  state = learner.init(jax.random.key(0))
  batch = batch_at(0)._replace(seen=jnp.arange(CLASSES) < 3)
  after, _ = learner.step(state, jax.random.key(0), batch)
  change = np.asarray(after.params["head"]["bias"] - state.params["head"]["bias"])
  assert change[2] < 0
  assert change[3] == 0  # never seen: untouched


def test_a_method_may_store_what_its_loss_computed():
  """As DER++ does: beside each input the energies that it had when it came."""

  def dark(problem):
    network = problem.network

    def init(params, model_state):
      energies = jax.ShapeDtypeStruct((network.num_classes,), jnp.float32)
      return buffers.empty_reservoir((problem.row, energies), budget=3 * SIZE)

    def loss(own, params, step):
      energies = all_energies(network, params, step.model_state, step.batch.x)
      drawn = buffers.draw(step.key, own, SIZE)
      x, before = drawn.x
      away = all_energies(network, params, step.model_state, x) - before
      losses, model_state = step.row_losses(params)
      dark = jnp.mean(jnp.where(drawn.valid[:, None], away**2, 0.0))
      return losses.mean() + dark, model_state, energies

    def track(own, record):
      x = record.batch.x, record.aux
      return buffers.offer(own, record.key, x, record.batch.y)

    return gradient_learner(problem, Plugin(init, loss, track))

  problem = make_problem(trial_of(("finetune", "sbc")), SGD)
  learner = dark(problem)
  state = learner.init(jax.random.key(0))
  for step in range(3):
    expected = learner.energies(state, batch_at(step).x)
    state, _ = jax.jit(learner.step)(state, jax.random.key(step), batch_at(step))
    _, stored = state.own.x
    rows = slice(step * SIZE, (step + 1) * SIZE)
    np.testing.assert_allclose(stored[rows], expected, rtol=1e-5, atol=1e-6)
