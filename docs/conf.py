"""The site: `make docs` builds it from these pages, the docstrings and the store."""

import os
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "_ext"))
# Notebooks run in processes of their own: the cells import what the pages import.
os.environ["PYTHONPATH"] = os.pathsep.join(
  [str(DOCS / "_ext"), str(DOCS.parent), os.environ.get("PYTHONPATH", "")]
).rstrip(os.pathsep)

# Compiling is most of the notebooks' time; these flags shorten it, as in the tests.
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
os.environ["XLA_FLAGS"] = " ".join(
  (
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
    os.environ.get("XLA_FLAGS", ""),
  )
)

import ebmjax  # noqa: E402 (after the environment is set)

project = "ebmjax"
version = release = ebmjax.__version__
extensions = [
  "myst_nb",
  "sphinx.ext.autodoc",
  "generated",
  "included",
  "mathml",
  "records",
]
exclude_patterns = ["_build", "_ext"]
html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"ebmjax {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_copy_source = False
highlight_language = "text"
smartquotes = False  # quotes of code stay as they are
# A page that includes a part of a file starts with that part's headings.
suppress_warnings = ["myst.header"]

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"  # from nothing, every time
nb_execution_in_temp = True
nb_execution_timeout = 1200  # seconds for a cell, on a machine that is shared
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

# Docstrings are plain text with code between backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
add_module_names = False
python_maximum_signature_line_length = 72
