"""One battery for every network: a new one is tested by being in the table."""

import pytest

from ebmjax.networks import NETWORKS
from ebmjax.testing.networks import (
  CHECKS,
  Trial,
  check_features,
  check_spec,
  make_trial,
)


def trial_of(network: str) -> Trial:
  """Returns a trial whose convolutions compile fast; their forms are equal."""
  spec = NETWORKS[network]
  native = {"conv_form": "native"} if "conv_form" in spec.keys else {}
  return make_trial(spec, **native)


# Their convolutions are those of the energy network, and compile for long.
CLASSIFIERS = ("sbc_conv4", "sbc_conv5")
LONG = ("compiled_equals_eager", "seeds_are_independent")


@pytest.mark.parametrize(
  ("network", "check"),
  [
    (network, check)
    for network in NETWORKS
    for check in CHECKS
    if network not in CLASSIFIERS or check not in LONG
  ],
)
def test_battery(network, check):
  CHECKS[check](trial_of(network))


@pytest.mark.parametrize("network", NETWORKS)
def test_spec(network):
  spec = NETWORKS[network]
  check_spec(spec)
  check_features(trial_of(network), spec)
  assert not spec.energy or spec.classifier in NETWORKS
