"""Learners do what they did before their specs: the fixture of states, a part of it."""

import numpy as np
import pytest

from ebmjax.methods import METHODS
from tests.states import STATES, state_of

SPLIT = "configs/splitmnist.py"
COMMANDS = [
  *(f"{SPLIT}:{method},sbc" for method in METHODS if f"{SPLIT}:{method},sbc" in STATES),
  *(SPLIT, f"{SPLIT}:boundary_free", f"{SPLIT}:boundary_free,online_ewc,sbc"),
  *("configs/permmnist.py:er", "configs/permmnist.py:sbc,source"),
  *("configs/cifar10.py", "configs/capacity.py"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_state_is_as_it_was(command):
  now, before = state_of(command), STATES[command]
  np.testing.assert_allclose(now["losses"], before["losses"], rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(now["norm"], before["norm"], rtol=1e-4)
