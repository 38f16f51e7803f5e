"""The report: one HTML file on a run that a colleague can open, without network access, in any browser.

``material`` gathers what is shown, ``drawings`` draws it, ``page`` lays it out; ``..._in_time`` are those of a run of
windows. ``inspection`` looks at data before a training, and ``screen`` prints what it saw.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .material import Material
    from .material_in_time import SeriesMaterial
    from .writing import html, verdict, write

# Looked up when first used: an inspection must not wait for what draws a report.
_HOME = {
    "Material": "material",
    "SeriesMaterial": "material_in_time",
    "html": "writing",
    "verdict": "writing",
    "write": "writing",
}
__all__ = ["Material", "SeriesMaterial", "html", "verdict", "write"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'grcd.report' has no attribute {name!r}")
