"""The command line: thin. Commands parse, call the library and print; this module turns errors into exit statuses.

0     done
2     something the user can correct: one message on standard error, no traceback
130   interrupted; a run goes on with the same command
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from io import StringIO
from typing import Any

from ..core import errors, interrupts, memory, progress, ranks
from ..core.errors import InputError, InputWarning, unknown
from ..core.files import is_full

SMALLER = {  # what to lower where memory does not suffice
    "train": "lower --window, the batch or the width (--set batch=..., --set width=...), or take fewer nodes or rows",
    "sample": "lower -n, and make several files",
    "impute": "lower -n, or fill fewer rows at a time",
    "forecast": "lower -n or --horizon",
    "augment": "lower -n, or vary fewer signals at a time",
    "score": "score fewer signals at a time",
    "report": "lower -n, or take fewer nodes or rows (--cap)",
    "evaluate": "give fewer signals, or take fewer nodes or rows (--cap)",
    "bench": "lower --jobs, or the batch (--set batch=...)",
}


def main() -> None:
    """What the `grcd` command does once it has started (see ``__main__``)."""
    before, errors.commands = errors.commands, True
    try:
        with progress.on_command():
            _run()
    finally:
        errors.commands = before


def _run() -> None:
    from .commands import app  # typer only; torch is imported by the commands that need it

    sys.stdout, sys.stderr = sys.stdout or StringIO(), sys.stderr or StringIO()  # closed ones are nothing to fail at
    stream: Any
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError, OSError):  # a stand-in for a stream, or a closed one
            stream.reconfigure(errors="backslashreplace")  # what a terminal cannot show never ends a command
    _say_warnings()
    try:
        status = app(standalone_mode=False)
    except BaseException as error:
        status = _status(error)
    interrupts.ignore()
    interrupts.clean()
    if status == interrupts.STATUS or interrupts.received:  # the parser swallows interrupts, and their message
        sys.stderr.write(interrupts.message() if ranks.rank() == 0 else "")
        status = interrupts.STATUS
    _flush()
    sys.exit(status if isinstance(status, int) else 0)


def _flush() -> None:
    """What nobody reads any more, or has no room, must not fail once more at the end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _status(error: BaseException) -> int:
    """Print what went wrong; returns the exit status. What is nobody's fault but ours is raised again."""
    # typer carries its own copy of click in some versions, so its exceptions are known by what they offer.
    kind = type(error).__name__
    if interrupts.received or isinstance(error, KeyboardInterrupt | EOFError) or kind == "Abort":
        return interrupts.STATUS
    if isinstance(error, InputError):
        return _say(error)
    if isinstance(error, SystemExit | BrokenPipeError):  # nobody reads the output any more: the parser's own exit
        return 0
    if memory.is_out(error):
        command = next(iter(sys.argv[1:]), "")
        return _say(memory.refusal(error, SMALLER.get(command, "take fewer nodes or rows, or a larger machine")))
    if isinstance(error, OSError):  # what no reader or writer has foreseen
        where = "" if error.filename is None else f": {error.filename}"
        do = "free some space, or choose another place" if is_full(error) else "check the path"
        return _say(InputError(f"{error.strerror or error}{where}", "a path that can be read or written", do))
    if kind == "NoArgsIsHelpError":  # a bare `grcd`: the help has been printed
        return 2
    if hasattr(error, "format_message"):
        return _say(_usage(error))
    raise error


def _say(error: Exception) -> int:
    which = f"process {ranks.rank()} of {ranks.size()}: " if ranks.rank() > 0 else ""
    print(f"grcd: {which}{error}", file=sys.stderr)
    return 2


def _say_warnings() -> None:
    """What the library says of the input, in one line each."""
    usual, shown = warnings.showwarning, set()

    def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, InputWarning):
            if str(message) not in shown and ranks.rank() == 0:
                print(f"grcd: note: {message}", file=sys.stderr)
            shown.add(str(message))
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = show


def _usage(error: Any) -> Exception:
    """A usage error of the parser, in our words: what is known, and what is nearest."""
    command: Any = getattr(getattr(error, "ctx", None), "command", None)
    options = sorted(option for p in getattr(command, "params", []) for option in p.opts if option.startswith("-"))
    if type(error).__name__ == "NoSuchOption" and options:
        return unknown("option", error.option_name, options)
    if "No such command" in error.format_message() and hasattr(command, "commands"):
        name = error.format_message().split("'")[1]
        return unknown("command", name, command.commands)
    where = getattr(getattr(error, "ctx", None), "command_path", "grcd")
    return InputError(
        f"a command that does not parse: {error.format_message()}",
        "arguments as the help lists them",
        f"see {where} --help",
    )
