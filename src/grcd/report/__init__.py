"""The report: one HTML file on a run that a colleague can open, without network access, in any browser.

``material`` gathers what is shown, ``drawings`` draws it, ``page`` lays it out.
"""

from .material import Material
from .page import html, verdict, write

__all__ = ["Material", "html", "verdict", "write"]
