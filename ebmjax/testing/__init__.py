"""The library's batteries of tests, for components of other packages, too.

    def test_my_method():
      check_method(my_package.method.SPEC, budget=12)

An AssertionError says in a sentence what a component has to do otherwise.
"""

from ebmjax.testing.methods import check_method
from ebmjax.testing.networks import check_network

__all__ = ["check_method", "check_network"]
