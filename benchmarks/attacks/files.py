"""Damaged and strange files in every format that signals and graphs are read from: a value or an `InputError`, within
limits of memory and time. They go through `load_dataset`, some in one process: a case is a whole file and a seed, from
which several damaged ones follow.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import signal
import traceback
import warnings
import zipfile
from pathlib import Path

import numpy as np

from grcd import load_dataset
from grcd.core.errors import InputError

from .child import limited
from .formats import FORBIDDEN, ROWS, npy, whole, write_forbidden
from .stage import NODES, Stage
from .verdict import Verdict

BATCH, BATCHES = 40, 6  # damaged files a case, cases a file
SECONDS, MEMORY = 10, 2 << 30
WORDS = """0 1 -1 007 1.5 1_000 1e308 -1e309 1e-320 inf -nan NaN NA null None true a b c d \u00e9 \u202ea =1+1 @a $x$
" ' "a 2024-01-01 2024-01-01T00:00 01/02/2024 9999-12-31 0001-01-01 1e18 0x10 \u0661 5%"""
NAMES = (
    """a b c d \u00e9 time date node sensor value source target from to weight cost x y lon lat id 0 1 2024-01-01 A"""
)
CELLS = [*WORDS.split(), "", " ", "1,5", '"a,b"', "1 000", "\u2009 1", "\0", "x" * 999]
HEADERS = [*NAMES.split(), "", " a", "\ufeffa", "Unnamed: 0"]
MARKS = [b"-1", b"nan", b"1e400", b'"', b",", b"\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b"&x;"]
SIZES = [b"9" * 12, b"\xff" * 8, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f"]
PIECES = [*MARKS, *SIZES, b"[" * 500, b"<" * 500, b'<!DOCTYPE x [<!ENTITY x SYSTEM "/etc/hostname">]>']


# -- damages ---------------------------------------------------------------------------------------------------------


def damaged(name: str, data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    """One way or another; of text sometimes a table that never was one, of archives sometimes what is inside."""
    if name.endswith(".csv") and random.random() < 0.8:
        table = [line.split(",") for line in data.decode().splitlines()]
        return strange_table(table if random.random() < 0.75 else random_table(random), random)
    if name.endswith(".npz") and random.random() < 0.6:
        return repacked(data, random)
    if name.endswith(".npy") and random.random() < 0.3:
        return npy(strange_array(random))
    data = bytearray(data)
    for _ in range(int(random.choice([1, 2, 3], p=[0.7, 0.2, 0.1]))):
        edited(data, other, random)
    return bytes(data)


def edited(data: bytearray, other: bytes, random: np.random.Generator) -> None:
    size = len(data)
    at = int(random.integers(min(size, 300) if random.random() < 0.4 else size)) if size else 0
    span = int(random.integers(1, 64))
    match int(random.integers(9)):
        case 0 if size:
            data[at] ^= 1 << int(random.integers(8))
        case 1 if size:
            data[at] = int(random.integers(256))
        case 2:
            del data[at:]
        case 3:
            del data[at : at + span]
        case 4:
            data[at:at] = data[at : at + span] * int(random.integers(1, 50))
        case 5:
            data[at:at] = PIECES[int(random.integers(len(PIECES)))]
        case 6:
            piece = PIECES[int(random.integers(len(PIECES)))]
            data[at : at + len(piece)] = piece
        case 7:
            start = int(random.integers(len(other)))
            data[at : at + span] = other[start : start + span]
        case _:  # a size that is claimed: digits become nines, or a word of the header becomes large
            digits = [i for i, byte in enumerate(data) if 48 <= byte <= 57][:400]
            if digits and random.random() < 0.6:
                place = digits[int(random.integers(len(digits)))]
                data[place : place + 1] = b"9" * int(random.integers(1, 15))
            else:
                data[at : at + 4] = (1 << int(random.integers(8, 32))).to_bytes(
                    4, ("little", "big")[int(random.integers(2))]
                )


def random_table(random: np.random.Generator) -> list[list[str]]:
    header = NODES if random.random() < 0.4 else [str(name) for name in random.choice(HEADERS, random.integers(1, 8))]
    shape = int(random.choice([0, 1, 5, ROWS])), len(header)
    return [list(header), *([f"{value:.3f}" for value in row] for row in random.normal(size=shape))]


def strange_table(table: list[list[str]], random: np.random.Generator) -> bytes:
    """Some cells are others, a row or a column is twice there, short, or gone; then some spelling of it as text."""

    def row() -> int:
        return int(random.integers(len(table))) if random.random() < 0.8 else 0

    for _ in range(int(random.choice([1, 2, 5]))):
        at, column = row(), int(random.integers(max(len(table[0]), 1)))
        match int(random.integers(9)):
            case 0:
                table.append(list(table[at]))
            case 1 if len(table) > 1:
                del table[at]
            case 2:
                table[at] = table[at][:column]
            case 3:
                table = [[*cells, *cells[column : column + 1]] for cells in table]
            case 4:
                table = [cells[:column] + cells[column + 1 :] for cells in table]
            case _ if column < len(table[at]):
                table[at][column] = str(random.choice(HEADERS if at == 0 and random.random() < 0.7 else CELLS))
    mark = random.choice([",", ";", "\t"], p=[0.94, 0.03, 0.03])
    end = random.choice(["\n", "\r\n", "\r"], p=[0.8, 0.17, 0.03])
    text = end.join(mark.join(cells) for cells in table)
    return text.encode(
        str(random.choice(["utf-8", "utf-8-sig", "utf-16", "latin-1"], p=[0.9, 0.06, 0.02, 0.02])), "replace"
    )


def strange_array(random: np.random.Generator) -> np.ndarray:
    shapes = [(), (0,), (5,), (0, 5), (40, 0), (40, 5), (5, 5), (40, 4), (2, 3, 5), (1, 5), (40, 5, 1, 1)]
    kinds = ["f8", "f4", "f2", ">f8", "i1", "u8", "?", "c16", "U3", "S3", "M8[ns]", "m8[s]", "f8,i4", "V8", "g"]
    array = np.zeros(shapes[int(random.integers(len(shapes)))], kinds[int(random.integers(len(kinds)))])
    if array.dtype.kind == "f" and array.size:
        array[...] = (
            random.normal(size=array.shape) * 10.0 ** int(random.integers(-320, 300))
            if array.dtype == "f8"
            else random.normal(size=array.shape)
        )
        array.flat[int(random.integers(array.size))] = [np.nan, np.inf, 0, -1][int(random.integers(4))]
    return np.asfortranarray(array) if random.random() < 0.3 else array


def repacked(data: bytes, random: np.random.Generator) -> bytes:
    """One array of an archive is another, claims another shape, or is gone; the checksums are right."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = sorted(members)[int(random.integers(len(members)))]
    match int(random.integers(4)):
        case 0:
            del members[name]
        case 1:
            members[name] = npy(strange_array(random))
        case 2:
            claims = [
                b"(1000000000000, 5)",
                b"(99999999999999999999,)",
                b"(-1, 5)",
                b"(40, 5, 9999999999)",
                b"((1,), 2)",
            ]
            head = members[name]
            start, end = head.find(b"("), head.find(b")") + 1
            claim = claims[int(random.integers(len(claims)))]
            members[name] = (head[:start] + claim + head[end:])[: len(head)] if start > 0 else head
        case _:
            content = bytearray(members[name])
            edited(content, data, random)
            members[name] = bytes(content)
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        return file.getvalue()


# -- the attack ------------------------------------------------------------------------------------------------------


def cases(stage: Stage, random: np.random.Generator) -> list[tuple]:
    with multiprocessing.get_context("fork").Pool(1) as pool:  # writers may start threads, which no fork survives
        stage.files = pool.apply(whole)
    for name in stage.files:
        if (found := batch(stage, name, -1, range(1), stage.path)[0]).what != "ok":
            raise SystemExit(f"{name}, which is whole, and yet:\n{found.seen}")
    found = [(f"{name}: batch {i}", name, int(random.integers(2**31))) for name in stage.files for i in range(BATCHES)]
    return found + [(f"{name}, which must not be read", name, 0) for name in FORBIDDEN]


def attack(stage: Stage, case: tuple, folder: Path) -> list[Verdict]:
    _, name, seed = case
    stage.put(folder)
    count, verdicts = 1 if name in FORBIDDEN else BATCH, []
    while len(verdicts) < count:
        verdicts += batch(stage, name, seed, range(len(verdicts), count), folder)
    return verdicts


def batch(stage: Stage, name: str, seed: int, numbers: range, folder: Path) -> list[Verdict]:
    """The verdicts on some files, read in one process; if it dies, that is the verdict on the last one."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            os.chdir(folder)
            limited(MEMORY, SECONDS * len(numbers))
            for number in numbers:
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                signal.alarm(SECONDS * 10)
                verdict = read_one(stage, name, seed, number)
                os.write(write, json.dumps(verdict).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as file:
        verdicts = [Verdict(*json.loads(line)) for line in file]
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if len(verdicts) < len(numbers):
        late = status in (-signal.SIGPROF, -signal.SIGALRM, -signal.SIGXCPU)
        what = "time-out" if late else "wrong exit code"
        verdicts.append(Verdict(what, f"{name}, seed {[seed, numbers[len(verdicts)]]}: ended with {status}"))
    return verdicts


def read_one(stage: Stage, name: str, seed: int, number: int) -> Verdict:
    """Damaged as the seed says; whole if it is negative."""
    random = np.random.default_rng([abs(seed), number])
    if name in FORBIDDEN:
        kind, path = "signals", write_forbidden(name, Path())
    else:
        kind, data = stage.files[name]
        others = [entry[1] for key, entry in stage.files.items() if Path(key).suffix == Path(name).suffix]
        path = Path(f"damaged{Path(name).suffix}")
        other = others[int(random.integers(len(others)))]
        path.write_bytes(damaged(name, data, other, random) if seed >= 0 else data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = (
                load_dataset(path, graph="graph.csv") if kind == "signals" else load_dataset("signals.csv", graph=path)
            )
    except InputError as error:
        return Verdict("refused", str(error)) if error.got and error.do else Verdict("unclear message", str(error))
    except Exception:
        return Verdict("traceback", f"{name}\n{traceback.format_exc()[-1500:]}")
    if name in FORBIDDEN:
        return Verdict("silent difference", f"{name} was read")
    if np.isinf(found.train).any() or len(found.graph) != found.train.shape[1]:
        return Verdict("silent difference", f"{name}: infinite readings, or another number of nodes than columns")
    return Verdict("ok")
