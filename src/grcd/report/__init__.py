"""The report: one HTML file on a run that a colleague can open, without network access, in any browser.

``material`` gathers what is shown, ``drawings`` draws it, ``page`` lays it out; ``..._in_time`` are those of a run of
windows.
"""

from .material import Material
from .material_in_time import SeriesMaterial
from .writing import html, verdict, write

__all__ = ["Material", "SeriesMaterial", "html", "verdict", "write"]
