"""Docstrings as the site shows them: examples as code, and index brackets that are no links."""

import re
import sys
from pathlib import Path

import griffe

sys.path.insert(0, str(Path(__file__).resolve().parent))

from site_stars import escaped


class Docstrings(griffe.Extension):
    """Reads every docstring before it is parsed."""

    def on_object(self, *, obj, **kwargs):
        """Give the section "Example" the name that the parser knows; keep `x[i][j]` in prose from being a link."""
        if obj.docstring is not None and not obj.is_alias:
            text = re.sub(r"^(\s*)Example:$", r"\1Examples:", obj.docstring.value, flags=re.M)
            code = re.compile(r"\s*(>>>|\.\.\.)")
            prose = (line if code.match(line) else re.sub(r"\]( ?)\[", r"]\1\\[", line) for line in text.split("\n"))
            obj.docstring.value = escaped("\n".join(prose))
