"""Downloads that survive a cut line: each file grows in `<target>.part` and takes its name when it is whole.

    a part of n bytes is there      asks for `Range: bytes=n-`
    206, beginning at n             appended to the part
    200                             the server sends all of it: the part starts over
    416, or 206 from elsewhere      the part is no beginning of this file: removed, the next try starts over
    cut, timed out, 408, 429, 5xx   waits a little and tries again, `TRIES` times in all
    any other 4xx                   gives up

The first file that fails ends the whole fetch, and so does Ctrl-C; parts stay, and the same call goes on with them.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from ...core.errors import InputError
from ...core.files import make_folder, refused
from ...core.progress import bar

WORKERS, TRIES, PAUSE, TIMEOUT, CHUNK = 8, 4, 0.5, 20.0, 1 << 16  # pause and time-out in seconds
LISTED = 3  # addresses in a message


def fetch(urls: Mapping[Path, str], label: str, advice: str = "") -> None:
    """Bring every file that is not there yet. ``advice`` ends the message for those who have no network."""
    missing = {target: url for target, url in urls.items() if not os.path.exists(target)}
    for folder in {target.parent for target in missing}:
        make_folder(folder)
    lines = _Lines()
    with ThreadPoolExecutor(WORKERS) as pool, bar(label, len(urls)) as advance:
        try:
            futures = {pool.submit(lines.download, target, url): target for target, url in missing.items()}
            for done, future in enumerate(as_completed(futures), len(urls) - len(missing) + 1):
                future.result()
                advance(done, futures[future].name)
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            lines.hang_up()
            if isinstance(error, _Failed):
                raise _message(error, missing, advice) from None
            raise


class _Cut(Exception):
    """May go better next time."""


class _Failed(Exception):
    """Has failed for good."""


class _Lines:
    """The connections under way."""

    def __init__(self) -> None:
        self.stopped, self.lock, self.open = threading.Event(), threading.Lock(), set[HTTPResponse]()

    def download(self, target: Path, url: str) -> None:
        part = target.with_name(target.name + ".part")
        reason: Exception | None = None
        try:
            for attempt in range(TRIES):
                if self.stopped.wait(PAUSE * 2 ** (attempt - 1) if attempt else 0):
                    return  # nobody waits for this file any more
                try:
                    self._continue(part, url)
                    part.replace(target)
                    return
                except _Cut as cut:
                    reason = cut
        except OSError as error:  # of the file system: those of the network are cuts
            raise refused(part, error) from None
        raise _Failed(f"{url}: {reason}")

    def _continue(self, part: Path, url: str) -> None:
        """One try: ask for what the part lacks, and add what comes."""
        have = part.stat().st_size if os.path.exists(part) else 0
        with self._answer(part, url, have) as response:
            if response.status != 206:
                have = 0
            elif not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                part.unlink(missing_ok=True)
                raise _Cut("the server sent another piece than was asked for")
            length = response.headers.get("Content-Length", "")
            total = have + int(length) if length.isdecimal() else None
            # Unbuffered: whatever happens, all that has come is in the part.
            with part.open("ab" if have else "wb", buffering=0) as file:
                while have != total and (chunk := _read(response)):
                    file.write(chunk)
                    have += len(chunk)
        if total is not None and have != total:
            raise _Cut(f"the connection was cut after {have} of {total} bytes")

    @contextmanager
    def _answer(self, part: Path, url: str, have: int) -> Iterator[HTTPResponse]:
        try:
            headers = {"User-Agent": "grcd"} | ({"Range": f"bytes={have}-"} if have else {})
            if urlsplit(url).scheme not in ("http", "https"):  # urllib would open files too
                raise _Failed(f"{url}: no http or https address")
            response = urlopen(Request(url, headers=headers), timeout=TIMEOUT)
        except HTTPError as error:
            error.close()
            if error.code == 416:
                part.unlink(missing_ok=True)
            if error.code in (408, 416, 429) or error.code >= 500:
                raise _Cut(f"HTTP {error.code} {error.reason}") from None
            raise _Failed(f"{url}: HTTP {error.code} {error.reason}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise _Cut(_reason(error)) from None
        with response:
            with self.lock:
                self.open.add(response)
            try:
                if self.stopped.is_set():
                    raise _Cut("stopped")
                yield response
            finally:
                with self.lock:
                    self.open.discard(response)

    def hang_up(self) -> None:
        """End every connection at once. A thread that waits for bytes cannot be stopped, but its line can be cut."""
        self.stopped.set()
        with self.lock:
            for response in self.open:
                with (
                    suppress(OSError, ValueError, AttributeError),
                    socket.socket(fileno=os.dup(response.fileno())) as line,
                ):
                    line.shutdown(socket.SHUT_RDWR)


def _read(response: HTTPResponse) -> bytes:
    try:
        return response.read1(CHUNK)  # one read of the socket, so the time-out holds for each
    except (OSError, HTTPException) as error:
        raise _Cut(_reason(error)) from None


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


def _message(error: _Failed, missing: Mapping[Path, str], advice: str) -> InputError:
    left = {target: url for target, url in missing.items() if not os.path.exists(target)}
    listed = [f"  {url}\n    as {target}" for target, url in list(left.items())[:LISTED]]
    if len(left) > LISTED:
        listed.append(f"  and {len(left) - LISTED} more of this kind")
    return InputError(
        f"no answer that could be used from {error} ({len(left)} of {len(missing)} files are still to come)",
        "a network, and the file at that address",
        "run the same command again: it goes on where it was. Without a network, download by hand\n"
        + "\n".join(listed + [f"  {advice}"] * bool(advice)),
    )
