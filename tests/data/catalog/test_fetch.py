"""Downloads from a server on this machine that cuts, stalls, lies and refuses."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from grcd.core.errors import InputError
from grcd.data.catalog import fetch as module
from grcd.data.catalog.fetch import fetch

BODY = bytes(range(256)) * 4_000  # a megabyte, no two pieces of it in the wrong place look right


class Handler(BaseHTTPRequestHandler):
    """Serves `server.files`; for each request of a path the next word of `server.script` says how."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        server, asked = self.server, self.headers.get("Range")
        with server.lock:
            server.asked.append((self.path, asked))
            server.busy += 1
            server.busiest = max(server.busiest, server.busy)
            word = server.script[self.path].pop(0) if server.script.get(self.path) else "serve"
        try:
            with contextlib.suppress(ConnectionError):
                self.answer(word, int(asked[6:-1]) if asked else 0)
        finally:
            with server.lock:
                server.busy -= 1

    def answer(self, word, start):
        body = self.server.files.get(self.path)
        body = body() if callable(body) else body
        if body is None or word.isdecimal():
            self.send_error(int(word) if word.isdecimal() else 404)
            return
        self.close_connection = True
        if self.server.gate is not None:
            self.server.gate.wait(10)
        if start and start >= len(body):
            self.send_error(416)
            return
        if word in ("ignore range", "no length") or not start:
            self.send_response(200)
            start = 0
        else:
            self.send_response(206)
            begin = start + 1 if word == "another range" else start
            self.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
        if word != "no length":
            self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        rest = body[start:]
        self.wfile.write(rest[: len(rest) // 2] if word in ("cut", "stall") else rest)
        if word == "stall":
            self.wfile.flush()
            self.server.over.wait(30)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64  # the default of 5 makes clients wait a second

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.script, self.asked = {}, {}, []
        self.lock, self.busy, self.busiest = threading.Lock(), 0, 0
        self.gate, self.over = None, threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_):
        """A client that went away is part of the game."""


@contextlib.contextmanager
def serving():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(module, "PAUSE", 0.001)
    with serving() as server:
        server.files["/x"] = BODY
        yield server


@pytest.fixture
def target(tmp_path):
    return tmp_path / "data" / "x.bin"


def part(target):
    return target.with_name("x.bin.part")


def get(server, target, **options):
    fetch({target: f"{server.url}/x"}, "x", **options)


def only(target):
    """The file is whole, and nothing else is in its folder."""
    return target.read_bytes() == BODY and [path.name for path in target.parent.iterdir()] == [target.name]


# -- one file --------------------------------------------------------------------------------------------------------


def test_a_file_comes_whole(server, target):
    get(server, target)
    assert only(target)
    assert server.asked == [("/x", None)]


def test_what_is_there_is_not_asked_for(server, target):
    target.parent.mkdir()
    target.write_text("mine")
    get(server, target)
    assert target.read_text() == "mine"
    assert server.asked == []


def test_a_part_is_continued_with_a_range(server, target):
    target.parent.mkdir()
    part(target).write_bytes(BODY[:12_345])
    get(server, target)
    assert only(target)
    assert server.asked == [("/x", "bytes=12345-")]


def test_after_a_cut_only_the_rest_is_asked_for(server, target):
    server.script["/x"] = ["cut", "cut"]
    get(server, target)
    half = len(BODY) // 2
    assert only(target)
    assert server.asked == [("/x", None), ("/x", f"bytes={half}-"), ("/x", f"bytes={half + half // 2}-")]


@pytest.mark.parametrize("words", [["ignore range"], ["no length"], ["cut", "ignore range"], ["another range"]])
def test_a_server_that_cannot_continue_starts_over(server, target, words):
    target.parent.mkdir()
    part(target).write_bytes(b"something else altogether" if words[0] != "cut" else BODY[:100])
    server.script["/x"] = words
    get(server, target)
    assert only(target)
    assert server.asked[0][1] is not None


def test_a_part_longer_than_the_file_starts_over(server, target):
    target.parent.mkdir()
    part(target).write_bytes(BODY + b"too much")
    get(server, target)
    assert only(target)
    assert [asked for _, asked in server.asked] == [f"bytes={len(BODY) + 8}-", None]


@pytest.mark.parametrize("word", ["500", "502", "503", "429", "408"])
def test_passing_faults_are_tried_again(server, target, word):
    server.script["/x"] = [word] * (module.TRIES - 1)
    get(server, target)
    assert only(target)
    assert len(server.asked) == module.TRIES


@pytest.mark.parametrize(("word", "times"), [("404", 1), ("403", 1), ("503", module.TRIES), ("cut", module.TRIES)])
def test_lasting_faults_end_with_a_message(server, target, word, times):
    server.script["/x"] = [word] * 100
    with pytest.raises(InputError) as caught:
        get(server, target, advice="or ask a friend")
    message = str(caught.value)
    assert len(server.asked) == times
    assert ("cut after" if word == "cut" else f"HTTP {word}") in message
    assert message.count(f"{server.url}/x") == 2  # what failed, and what to download by hand
    assert f"as {target}" in message
    assert "or ask a friend" in message
    assert not target.exists()
    assert part(target).exists() == (word == "cut")


def test_a_connection_that_stalls_is_given_up_and_continued(server, target, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", 0.2)
    server.script["/x"] = ["stall"]
    get(server, target)
    assert only(target)
    assert server.asked[1] == ("/x", f"bytes={len(BODY) // 2}-")


def test_an_empty_file_is_a_file(server, target):
    server.files["/x"] = b""
    get(server, target)
    assert target.read_bytes() == b""


def test_no_network_says_what_to_download_by_hand(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.0)
    with serving() as server:
        gone = server.url
    urls = {tmp_path / f"{i}.csv": f"{gone}/{i}.csv" for i in range(207)}
    with pytest.raises(InputError) as caught:
        fetch(urls, "metr-la")
    message = str(caught.value)
    assert "Connection refused" in message
    assert "207 of 207 files are still to come" in message
    assert "by hand" in message
    assert f"{gone}/0.csv\n    as {tmp_path / '0.csv'}" in message
    assert "and 204 more" in message
    assert len(message.splitlines()) < 15


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "x", "http://", "http://127.0.0.1:port/x"])
def test_only_web_addresses_are_opened(tmp_path, monkeypatch, url):
    monkeypatch.setattr(module, "PAUSE", 0.0)
    with pytest.raises(InputError):
        fetch({tmp_path / "x": url}, "x")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_said_before_anything_is_asked(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="while writing"):
        get(server, tmp_path / "file" / "x.bin")
    assert server.asked == []


def test_a_part_that_cannot_be_written_is_an_input_error(server, target):
    part(target).mkdir(parents=True)
    with pytest.raises(InputError, match=r"while writing .*x\.bin\.part"):
        get(server, target)


# -- many files ------------------------------------------------------------------------------------------------------


def test_many_files_come_at_once_and_each_only_once(server, tmp_path):
    bodies = {f"/{i}": bytes([i]) * (1_000 + i) for i in range(40)}
    server.files = bodies
    server.gate = threading.Event()

    def open_when_all_lines_are_busy():
        for _ in range(1_000):
            if server.busy >= module.WORKERS:
                break
            time.sleep(0.01)
        server.gate.set()

    opener = threading.Thread(target=open_when_all_lines_are_busy)
    opener.start()
    fetch({tmp_path / f"{i}.bin": f"{server.url}/{i}" for i in range(40)}, "many")
    opener.join()
    assert server.busiest >= module.WORKERS
    assert Counter(path for path, _ in server.asked) == Counter(list(bodies))
    assert {f"/{path.stem}": path.read_bytes() for path in tmp_path.iterdir()} == bodies


def test_one_that_fails_ends_the_others_and_the_next_call_brings_only_the_rest(server, tmp_path):
    urls = {tmp_path / f"{i}.bin": f"{server.url}/{i}" for i in range(60)}
    server.files = {f"/{i}": BODY[: 100 + i] for i in range(60) if i != 7}
    with pytest.raises(InputError, match="HTTP 404"):
        fetch(urls, "many")
    there = {path.name for path in tmp_path.iterdir() if path.suffix == ".bin"}
    assert len(there) < 60
    server.files["/7"] = BODY[:107]
    server.asked.clear()
    fetch(urls, "many")
    assert not {f"{path[1:]}.bin" for path, _ in server.asked} & there
    assert all(path.read_bytes() == BODY[: 100 + int(path.stem)] for path in urls)
    assert len(list(tmp_path.iterdir())) == 60


# -- interrupts ------------------------------------------------------------------------------------------------------

SCRIPT = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background ignores it
from grcd.data.catalog import fetch as module
from grcd.data.catalog.fetch import fetch
module.TIMEOUT = 3600
folder, url = Path(sys.argv[1]), sys.argv[2]
try:
    fetch({folder / f"{i}.bin": f"{url}/{i}" for i in range(20)}, "stalled")
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_an_interrupt_ends_stalled_downloads_at_once_and_keeps_the_parts(server, tmp_path):
    server.files = {f"/{i}": BODY for i in range(20)}
    server.script = {f"/{i}": ["stall"] for i in range(20)}
    half = len(BODY) // 2
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path), server.url], env={**os.environ})
    try:
        parts = [tmp_path / f"{i}.bin.part" for i in range(module.WORKERS)]
        while not all(path.exists() and path.stat().st_size == half for path in parts):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=300) == 130  # long before the stalled lines would time out by themselves
    finally:
        process.kill()
        process.wait()
    assert sorted(tmp_path.iterdir()) == sorted(parts)
    assert all(path.read_bytes() == BODY[:half] for path in parts)

    server.asked.clear()
    server.script.clear()
    fetch({tmp_path / f"{i}.bin": f"{server.url}/{i}" for i in range(20)}, "again")
    assert all(path.read_bytes() == BODY for path in tmp_path.iterdir())
    assert Counter(asked for _, asked in server.asked) == {f"bytes={half}-": 8, None: 12}
