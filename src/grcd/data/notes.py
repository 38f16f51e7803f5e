"""What was done on reading, or looks wrong, that a user should know: what it is, and what to do about it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from ..core.errors import InputWarning, in_python


class Note(str):
    """One sentence, ``what: do``, that keeps its two parts."""

    what: str
    do: str  # empty where nothing is to be done

    def __new__(cls, what: str, do: str = "") -> Note:
        note = super().__new__(cls, f"{what}: {do}" if do else what)
        note.what, note.do = what, do
        return note

    def __reduce__(self) -> tuple[type[Note], tuple[str, str]]:
        return Note, (self.what, self.do)


def warn(notes: Iterable[str], stacklevel: int = 2) -> None:
    """Each as a warning at the caller of whoever calls this, or further up."""
    for note in notes:
        advice = in_python(note.do if isinstance(note, Note) else note)
        warnings.warn(f"{note}{advice}", InputWarning, stacklevel=stacklevel + 1)
