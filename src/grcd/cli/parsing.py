"""Options that are more than one word: lists, numbers and settings as text. Errors are imported where they arise."""

from __future__ import annotations

import shlex
import sys
from typing import Any


def listed(text: str | None) -> list[str]:
    """Words with commas between them."""
    return [part.strip() for part in text.split(",")] if text else []


def numbers(text: str, option: str = "--seeds") -> list[int]:
    """`--seeds` and the like: whole numbers with commas between them."""
    from ..core.errors import InputError

    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} {text}", "whole numbers with commas", f"for example {option} 1,2") from None


def settings(pairs: list[str]) -> dict[str, str]:
    """`--set key=value` options; their keys and types are checked where the configuration is made."""
    from ..core.errors import InputError

    for pair in pairs:
        if "=" not in pair:
            raise InputError(f"--set {pair}", "key=value", "for example --set lr=1e-3")
        if pair.split("=")[0] in ("method", "seed"):
            raise InputError(f"--set {pair}", f"--{pair.replace('=', ' ')}", "give it as an option of its own")
    return dict(pair.split("=", 1) for pair in pairs)


def window(text: str | None) -> int | str | None:
    """`--window`: a number of rows, or auto."""
    from ..core.errors import InputError

    if text is None or text == "auto":
        return text
    if not text.isdecimal() or not 1 <= int(text) <= 10**6:
        do = "for example --window 24, or --window auto; 1 takes every row by itself"
        raise InputError(f"--window {text}", "a number of rows from 1 up, or auto", do)
    return int(text)


def share(text: str | None) -> float | None:
    """`--start` of single moments: a number."""
    from ..core.errors import InputError

    try:
        return None if text is None else float(text)
    except ValueError:
        do = "for example --start 0.5; a time is for a run with a window"
        raise InputError(f"--start {text}", "a share of the largest noise level", do) from None


def moment(text: str | None) -> Any:
    """`--start` of windows: a time, as the data have them."""
    if text is None:
        return None
    import numpy as np

    from ..data.times import parsed

    return parsed(np.array([text]), "--start")[0]


def shares(text: str | None) -> list[float]:
    """`--quantiles`: numbers between 0 and 1."""
    from ..core.errors import InputError

    try:
        quantiles = [float(part) for part in text.split(",")] if text else []
        if not all(0 <= level <= 1 for level in quantiles):
            raise ValueError
        return quantiles
    except ValueError:
        raise InputError(f"--quantiles {text}", "shares between 0 and 1, with commas", "e.g. 0.05,0.95") from None


def levels(grid: str | None) -> str | list[float] | None:
    """`--grid`: a name, or numbers."""
    if grid is None:
        return None
    try:
        return [float(level) for level in grid.split(",")]
    except ValueError:
        return grid


def command() -> str:
    """The command that is running, as it would be typed."""
    return shlex.join(["grcd", *sys.argv[1:]])
