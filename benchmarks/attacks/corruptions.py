"""Every file of a run, damaged in many ways: bytes, tensors, JSON, the files of another run. Then the commands that
read it: `sample`, `impute`, `report`, `train` again on a finished run; `train` on one to go on with. Each has to end
as if nothing were damaged, or to refuse and name the file. Of a log, lines may be cut away if a note says so.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .child import command
from .stage import CHECKPOINT, FILES, IMPUTE, MANIFEST, METRICS, MODEL, REPORT, SAMPLE, TRAIN, Stage, look, said
from .verdict import Verdict, judged

COMMANDS = {"sample": SAMPLE, "impute": IMPUTE, "report": REPORT, "train again": TRAIN, "resume": TRAIN}
READERS = {  # of which file which command knows more than that it is there
    ("finished", MANIFEST): ("sample", "impute", "report", "train again"),
    ("finished", MODEL): ("sample", "impute", "report", "train again"),
    ("finished", METRICS): ("sample", "report", "train again"),
    ("half", MANIFEST): ("resume",),
    ("half", METRICS): ("resume",),
    ("half", CHECKPOINT): ("resume",),
}
SEVERAL, VALUES, TENSORS = 6, 25, 6  # seeded ones: of each damage to bytes, of values in JSON, of each to tensors
DEEP = "[" * 200_000
STRANGE = ["null", '"x"', '""', "-1", "0", "1e308", "100000000000000000000", "Infinity", "NaN", "[]", "{}", "true"]
STRANGE += ["2147483648", "1000000000", '"\\ud800"', DEEP]
LINES = [b"hello\n", b"[1, 2]\n", b"null\n", b"{}\n", b'{"update": "x", "val": 1}\n', b'{"update": 1e999}\n', b"\xff\n"]
LINES += [
    DEEP.encode() + b"\n",
    b'{"update": 6, "tr',
    b"\n\n\n",
    b'{"update": 4, "train": NaN, "val": NaN}\n',
    b"\0" * 99,
]

Damage = Callable[[bytes, np.random.Generator], bytes]


def cases(stage: Stage, random: np.random.Generator) -> list[tuple]:
    found = []
    for run, file in READERS:
        damages = [(name, i) for name in BYTES for i in range(SEVERAL)] + [(name, 0) for name in ONCE]
        damages += [(name, i) for name in TENSOR for i in range(TENSORS)] if file in (MODEL, CHECKPOINT) else []
        damages += (
            [("a value", i) for i in range(VALUES)] + [("a digit", i) for i in range(VALUES)]
            if file == MANIFEST
            else []
        )
        damages += (
            [("a line", i) for i in range(len(LINES))] + [("a digit", i) for i in range(6)] if file == METRICS else []
        )
        damages += [("metadata", i) for i in range(VALUES)] if file == CHECKPOINT else []
        for name, i in damages:
            found.append((f"{run} {file}: {name} {i}", run, file, name, i, int(random.integers(2**31))))
    return found


def attack(stage: Stage, case: tuple, folder: Path) -> Verdict:
    _, run, file, name, i, seed = case
    stage.put(folder, run)
    path = folder / "run" / file
    before = path.read_bytes()
    other = (stage.path / f"other-{run}" / file).read_bytes()
    damage(path, name, i, other, np.random.default_rng(seed))
    if path.exists() and path.read_bytes() == before:
        return Verdict("ok", "the damage changed nothing")
    verdicts = []
    for number, reader in enumerate(READERS[run, file]):
        copy = folder / f"copy{number}"
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("copy*"))
        names = (*FILES, "another configuration") if name == "of another run" else (file,)
        verdict = judged_reader(stage, reader, file, names, copy)
        if verdict.what not in ("ok", "refused"):
            return verdict
        verdicts.append(verdict)
    return next((verdict for verdict in verdicts if verdict.what == "refused"), verdicts[0])


def judged_reader(stage: Stage, reader: str, file: str, names: tuple[str, ...], folder: Path) -> Verdict:
    end = command(COMMANDS[reader], folder)
    if wrong := judged(end, names=names):
        return wrong
    if end.status == 2:
        return Verdict("refused", str(end))
    whole = stage.undisturbed[reader]
    found = look(folder)
    compared = [name for name in whole.left if name != f"run/{file}" or reader == "resume"]
    changed = [name for name in compared if found.get(name) != whole.left[name]]
    if file == METRICS and "grcd: note:" in end.err and METRICS in end.err:
        changed = [name for name in changed if name not in (f"run/{METRICS}", "run/report.html")]
    if changed or said(end) != whole.said:
        return Verdict(
            "silent difference", f"{end}\n(other than undisturbed: {', '.join(changed) or 'what it prints'})"
        )
    return Verdict("ok")


# -- damages ---------------------------------------------------------------------------------------------------------


def damage(path: Path, name: str, i: int, other: bytes, random: np.random.Generator) -> None:
    data = path.read_bytes()
    if name == "missing":
        path.unlink()
        return
    if name == "of another run":
        path.write_bytes(other)
    elif name in ONCE:
        path.write_bytes(ONCE[name](data))
    elif name in BYTES:
        path.write_bytes(BYTES[name](data, random))
    elif name in TENSOR:
        path.write_bytes(with_tensor(data, TENSOR[name], random))
    elif name == "a value":
        path.write_bytes(with_value(data, random))
    elif name == "a digit":
        path.write_bytes(with_digit(data, random))
    elif name == "metadata":
        path.write_bytes(with_metadata(data, random))
    elif name == "a line":
        place = len(data) if random.random() < 0.7 else data.index(b"\n") + 1
        path.write_bytes(data[:place] + LINES[i] + data[place:])


def place(data: bytes, random: np.random.Generator) -> int:
    """Anywhere, but half of the time in the beginning: headers are there."""
    return int(random.integers(min(len(data), 200) if random.random() < 0.5 else len(data)))


def with_bit(data: bytes, random: np.random.Generator) -> bytes:
    at = place(data, random)
    return data[:at] + bytes([data[at] ^ 1 << int(random.integers(8))]) + data[at + 1 :]


def with_byte(data: bytes, random: np.random.Generator) -> bytes:
    at = place(data, random)
    return data[:at] + random.bytes(1) + data[at + 1 :]


def with_zeros(data: bytes, random: np.random.Generator) -> bytes:
    at = place(data, random)
    return data[:at] + b"\0" * len(data[at : at + 16]) + data[at + 16 :]


def cut(data: bytes, random: np.random.Generator) -> bytes:
    return data[: place(data, random)]


def without_piece(data: bytes, random: np.random.Generator) -> bytes:
    at = place(data, random)
    return data[:at] + data[at + int(random.integers(1, 9)) :]


BYTES: dict[str, Damage] = {
    "a bit": with_bit,
    "a byte": with_byte,
    "zeros": with_zeros,
    "cut": cut,
    "a piece less": without_piece,
}
ONCE: dict[str, Callable[[bytes], bytes]] = {
    "missing": bytes,
    "of another run": bytes,
    "empty": lambda data: b"",
    "all zeros": lambda data: bytes(len(data)),
    "one byte less": lambda data: data[:-1],
    "more at the end": lambda data: data + b"more",
    "twice": lambda data: data * 2,
    "half": lambda data: data[: len(data) // 2],
    "no UTF-8": lambda data: data[: len(data) // 2] + b"\xff\xfe" + data[len(data) // 2 :],
    "nested": lambda data: DEEP.encode(),
    "a number": lambda data: b"7",
    "an object": lambda data: b"{}",
    "a claim of a large header": lambda data: struct.pack("<Q", 1 << 40) + data[8:],
}


def leaves(value: object, path: tuple = ()) -> list[tuple]:
    """The ways to every entry of JSON, inner ones too."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return ([path] if path else []) + [way for key, entry in inner for way in leaves(entry, (*path, key))]


def with_value(data: bytes, random: np.random.Generator) -> bytes:
    """One entry of a JSON object is something else, or gone."""
    record = json.loads(data)
    ways = leaves(record)
    *way, last = ways[int(random.integers(len(ways)))]
    inner = record
    for key in way:
        inner = inner[key]
    chosen = int(random.integers(len(STRANGE) + 2))
    if chosen >= len(STRANGE):
        del inner[last]
        return json.dumps(record, indent=1).encode()
    inner[last] = "@here@"
    return json.dumps(record, indent=1).replace('"@here@"', STRANGE[chosen]).encode()


def with_digit(data: bytes, random: np.random.Generator) -> bytes:
    """One digit of one number is another: still good JSON."""
    places = [i for i, byte in enumerate(data) if chr(byte).isdigit()]
    at = places[int(random.integers(len(places)))]
    return data[:at] + str((int(chr(data[at])) + int(random.integers(1, 9))) % 10).encode() + data[at + 1 :]


def with_metadata(data: bytes, random: np.random.Generator) -> bytes:
    """What a checkpoint says beside its tensors: JSON inside of JSON."""
    header, body = opened(data)
    said = header.get("__metadata__", {})
    key = sorted(said)[int(random.integers(len(said)))]
    if random.random() < 0.1:
        del said[key]
    else:
        try:
            changed = (
                with_value(said[key].encode(), random)
                if random.random() < 0.8
                else with_digit(said[key].encode(), random)
            )
        except (ValueError, IndexError):  # no JSON object
            changed = b"x" + said[key].encode()
        said[key] = changed.decode("utf-8", "replace")
    return closed(header, body)


def opened(data: bytes) -> tuple[dict, bytes]:
    """A safetensors file by hand: eight bytes of length, a header in JSON, the numbers."""
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def closed(header: dict, body: bytes) -> bytes:
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def with_tensor(data: bytes, change: Callable, random: np.random.Generator) -> bytes:
    header, body = opened(data)
    names = sorted(
        name
        for name in header
        if name != "__metadata__" and header[name]["data_offsets"][0] < header[name]["data_offsets"][1]
    )
    name = names[int(random.integers(len(names)))]
    body = bytearray(body)
    change(header, body, name, random)
    return closed(header, bytes(body))


KINDS = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4"}


def number(value: float | None) -> Callable:
    """One entry of a tensor becomes that; or, without one, a little larger."""

    def change(header: dict, body: bytearray, name: str, random: np.random.Generator) -> None:
        kind, (start, end) = np.dtype(KINDS[header[name]["dtype"]]), header[name]["data_offsets"]
        entries = np.frombuffer(bytes(body[start:end]), kind).copy()
        at = int(random.integers(len(entries)))
        if kind.kind == "i":
            entries[at] += 1 if value is None else 10**9
        else:
            entries[at] = entries[at] * 1.01 + 1e-3 if value is None else value
        body[start:end] = entries.tobytes()

    return change


def renamed(header: dict, body: bytearray, name: str, random: np.random.Generator) -> None:
    header[f"{name}x"] = header.pop(name)


def dropped(header: dict, body: bytearray, name: str, random: np.random.Generator) -> None:
    """With its bytes: those behind it move up."""
    start, end = header.pop(name)["data_offsets"]
    del body[start:end]
    for key, entry in header.items():
        if key != "__metadata__" and entry["data_offsets"][0] >= end:
            entry["data_offsets"] = [place - (end - start) for place in entry["data_offsets"]]


def reshaped(header: dict, body: bytearray, name: str, random: np.random.Generator) -> None:
    header[name]["shape"] = [1, *header[name]["shape"][::-1]]


def other_type(header: dict, body: bytearray, name: str, random: np.random.Generator) -> None:
    """The same bytes under another type, of which there are as many."""
    entry = header[name]
    entry["dtype"] = {"F32": "I32", "F64": "I64", "I64": "F64", "I32": "F32"}[entry["dtype"]]


def one_number(header: dict, body: bytearray, name: str, random: np.random.Generator) -> None:
    """Of shape (1, 1), which fits wherever shapes are stretched."""
    entry = header[name]
    dropped(header, body, name, random)
    header[name] = entry | {"shape": [1, 1], "data_offsets": [len(body), len(body) + int(KINDS[entry["dtype"]][-1])]}
    body += np.ones(1, KINDS[entry["dtype"]]).tobytes()


def claimed(header: dict, body: bytearray, name: str, random: np.random.Generator) -> None:
    header[name]["shape"] = [10**9, *header[name]["shape"]]


def exchanged(header: dict, body: bytearray, name: str, random: np.random.Generator) -> None:
    """With another tensor of the same type and shape, or by the name of any other."""
    entry = header[name]
    same = [
        k
        for k, v in header.items()
        if k not in (name, "__metadata__") and (v["dtype"], v["shape"]) == (entry["dtype"], entry["shape"])
    ]
    other = same[0] if same else next(k for k in header if k not in (name, "__metadata__"))
    header[name], header[other] = header[other], header[name]


TENSOR: dict[str, Callable] = {
    "NaN": number(np.nan),
    "inf": number(-np.inf),
    "a huge number": number(1e30),
    "a number a little larger": number(None),
    "renamed": renamed,
    "dropped": dropped,
    "reshaped": reshaped,
    "another type": other_type,
    "one number": one_number,
    "a huge shape": claimed,
    "exchanged": exchanged,
}
