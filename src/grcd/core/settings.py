"""Typed settings: dataclasses whose every field is held to its type and its range when one is made."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from .errors import InputError

# Of numbers whose field says nothing else: from the least that is above zero to what nobody needs, which is a slip.
RANGES: dict[str, dict[str, float]] = {
    "int": {"least": 1, "most": 10**12},
    "float": {"least": 1e-12, "most": 1e6},
}
NUMBERS = {"int": "a whole number", "float": "a finite number"}


def ranged(default: float, least: float | None = None, most: float | None = None) -> Any:
    """A field for a number from ``least`` to ``most``; an end that is left out is that of its type (``RANGES``)."""
    ends = {"least": least, "most": most}
    return field(default=default, metadata={end: value for end, value in ends.items() if value is not None})


@dataclass(frozen=True)
class Settings:
    """Base of a setting. Fields are ``int``, ``float`` or ``str``; what can be read as such without loss becomes it."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            kind = str(getattr(entry.type, "__name__", entry.type))
            if kind in ("int", "float", "str"):
                value = typed(entry.name, kind, getattr(self, entry.name))
                object.__setattr__(self, entry.name, value)
                if kind in RANGES:
                    _refuse_outside(entry.name, value, **RANGES[kind] | dict(entry.metadata))


def typed(key: str, kind: str, value: Any) -> Any:
    """The value as its field's type, if that loses nothing: "128" and 128.0 are whole numbers, 1.5 and inf are not."""
    try:
        if kind == "str":
            return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        if isinstance(value, bool):
            raise ValueError
        number = {"int": int, "float": float}[kind](value)
        if not math.isfinite(number) or (kind == "int" and not isinstance(value, str) and number != value):
            raise ValueError
        return number
    except (TypeError, ValueError, OverflowError):
        expected = NUMBERS[kind]
        raise InputError(f"{key} = {value!r}", expected, f"give {key} as {expected}") from None


def _refuse_outside(key: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        expected = f"a value {'above zero: ' if least > 0 else ''}from {least:,g} to {most:,g}"
        do = f"leave {key} at its default, or choose one in that range"
        raise InputError(f"{key} = {value!r:.40}", expected, do)
