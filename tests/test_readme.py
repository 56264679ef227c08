"""What the documentation shows runs."""

import doctest
import re
from pathlib import Path

from ebmjax import losses

README = Path(__file__).parent.parent / "README.md"


def test_the_readme_s_loss_example_runs():
  blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
  example = next(block for block in blocks if "losses.contrastive" in block)
  names: dict = {}
  exec(compile(example, str(README), "exec"), names)
  assert names["gradient"][:, 3].any()


def test_docstring_examples():
  found = doctest.testmod(losses)
  assert found.attempted > 0
  assert found.failed == 0


def test_every_config_named_in_the_readme_exists():
  files = set(re.findall(r"configs/\w+\.py", README.read_text()))
  assert files
  assert all((README.parent / file).is_file() for file in files)
