"""The page of a run, whatever it is a run of, and its file."""

from __future__ import annotations

from pathlib import Path

from ..core.files import whole
from . import page, page_in_time, verdict_in_time
from .material import Material
from .material_in_time import SeriesMaterial


def html(material: Material | SeriesMaterial) -> str:
    """The whole page."""
    return page_in_time.html(material) if isinstance(material, SeriesMaterial) else page.html(material)


def verdict(material: Material | SeriesMaterial) -> tuple[str, str]:
    """What the numbers mean, in a word (good, fair, bad) and in a sentence."""
    return verdict_in_time.verdict(material) if isinstance(material, SeriesMaterial) else page.verdict(material)


def write(path: str | Path, material: Material | SeriesMaterial) -> int:
    """Write the page, whole or not at all; returns its size in bytes."""
    text = html(material).encode(errors="backslashreplace")  # a file's name may be no text
    with whole(path) as temporary:
        temporary.write_bytes(text)
    return len(text)
