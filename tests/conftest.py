"""Strictness for every test: silent broadcasting raises."""

import jax

jax.config.update("jax_numpy_rank_promotion", "raise")
