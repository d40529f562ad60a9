"""Sphinx: pages in Markdown, filled from the code; nothing is fetched from anywhere."""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import mrot_scale  # noqa: E402 - found where the path above leads
from docs.generate.pages import filled  # noqa: E402

project = "mrot-scale"
author = "The mrot-scale developers"
copyright = author
version = release = mrot_scale.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "generate"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence"]
default_role = "code"
smartquotes = False  # they turn --options into dashes
nitpicky = False

autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"mrot-scale {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False


def setup(app: Any) -> dict[str, Any]:
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True}


def _fill(app: Any, name: str, source: list[str]) -> None:
    source[0] = filled(source[0])
