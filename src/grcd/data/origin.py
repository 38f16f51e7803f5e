"""Where signals came from, and how they were prepared: the record that every run keeps.

``run.json`` has it under ``data``, ``made``; the options of the command under ``asked``. Nothing else knows those keys.
What is not known is None, and is not written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from .written_times import TimeColumn, Written

KEYS = {"options": "asked"}  # fields that are written under another name
# What a run's manifest is checked for.
ENTRIES: dict[str, Any] = {"asked?": {}, "command?": str, "folder?": str, "unit?": str, "written?": [str]}


@dataclass(frozen=True)
class Origin:
    """What was read, with which options, and by which command."""

    source: str | None = None  # a dataset's name, or a file
    unit: str | None = None
    missing: float | None = None  # share of all readings
    markers: list[float] | None = None  # values that marked a missing reading
    fill: str | None = None  # the policy
    split_by: str | None = None
    split_seed: int | None = None  # of a random split
    files: dict[str, str] | None = None  # by split, where it has one of its own
    cap: list[int] | None = None
    every: str | None = None  # the clock that rows were put on
    channels: list[str] | None = None  # of a series
    written: list[str] | None = None  # how its times are written: pattern and offset from UTC (see ``written_times``)
    options: dict[str, Any] | None = None  # those of ``load_dataset`` that bring the same data again, source included
    command: str | None = None  # that trained the run
    folder: str | None = None  # in which it was given: where relative paths start
    further: dict[str, Any] = field(default_factory=dict)  # whatever else a caller of ``fit`` wants to be kept

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Origin:
        """From what ``to_dict`` made."""
        names = {KEYS.get(part.name, part.name): part.name for part in fields(cls) if part.name != "further"}
        values = {names[key]: value for key, value in record.items() if key in names}
        return cls(**values, further={key: value for key, value in record.items() if key not in names})

    @classmethod
    def of_run(cls, manifest: Mapping[str, Any]) -> Origin:
        """As a run's manifest has it; of a model that no run knows of, nothing."""
        return cls.of(manifest.get("data", {}).get("made", {}))

    @property
    def dropped(self) -> tuple[str, ...]:
        """Nodes that the options left out."""
        return tuple(map(str, (self.options or {}).get("drop", ())))

    @property
    def label(self) -> str | None:
        """The column that said which split a row belongs to."""
        return self.split_by if self.split_by not in ("chronological", "random") else None

    @property
    def clock(self) -> TimeColumn:
        """The column of times of what is generated: under the name that such files have, written as they were."""
        return TimeColumn(written=None if self.written is None else Written(*self.written))

    @property
    def common(self) -> bool:
        """Whether the options left out what only the signals or only the graph had."""
        return bool((self.options or {}).get("common", False))

    def to_dict(self) -> dict[str, Any]:
        """For JSON. A split that is not random has no seed, and says so."""
        values = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "further"}
        seeded = self.split_by is not None
        kept = {key: value for key, value in values.items() if value is not None or (key == "split_seed" and seeded)}
        return {KEYS.get(key, key): value for key, value in kept.items()} | self.further

    def prepared(self) -> dict[str, Any]:
        """How the signals were prepared: all that is known but for what only commands need: options, command and its
        folder, and how times are written."""
        aside = {KEYS["options"], "command", "folder", "written"}
        return {key: value for key, value in self.to_dict().items() if key not in aside}
