"""The library's tests of components, also for use in other packages.

    def test_my_method():
      check_method(my_package.method.SPEC, budget=12)

An AssertionError says in one sentence what is wrong with the component.
"""

from ebmjax.testing.methods import check_method
from ebmjax.testing.networks import check_network

__all__ = ["check_method", "check_network"]
