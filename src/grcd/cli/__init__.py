"""The command line: thin. Commands parse, call the library and print; this module turns errors into exit statuses.

0     done
2     something the user can correct: one message on standard error, no traceback
130   interrupted; a run goes on with the same command
"""

from __future__ import annotations

import signal
import sys
import warnings
from contextlib import suppress

from ..errors import InputError, InputWarning, unknown


def main() -> None:
    """The `grcd` command."""
    from .commands import app  # typer only; torch is imported by the commands that need it

    _say_warnings()
    with suppress(ValueError):  # only the main thread may
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up as an interrupt does
    try:
        status = app(standalone_mode=False)
        if status == 130:  # the parser has swallowed the interrupt, and its message
            status = _interrupted()
    except InputError as error:
        status = _say(error)
    except MemoryError as error:
        got = f"too little memory ({error or 'no more to be had'})"
        status = _say(InputError(got, "data that fit into it", "take fewer nodes or rows, or a larger machine"))
    except OSError as error:  # what no reader or writer has foreseen
        where = "" if error.filename is None else f": {error.filename}"
        status = _say(
            InputError(f"{error.strerror or error}{where}", "a path that can be read or written", "check the path")
        )
    except (KeyboardInterrupt, EOFError):
        status = _interrupted()
    except Exception as error:
        # typer carries its own copy of click in some versions, so its exceptions are known by what they offer.
        if type(error).__name__ == "Abort":
            status = _interrupted()
        elif type(error).__name__ == "NoArgsIsHelpError":  # a bare `grcd`: the help has been printed
            status = 2
        elif hasattr(error, "format_message"):
            status = _say(_usage(error))
        else:
            raise
    sys.exit(status if isinstance(status, int) else 0)


def _say(error: Exception) -> int:
    print(f"grcd: {error}", file=sys.stderr)
    return 2


def _say_warnings() -> None:
    """What the library says of the input, in one line each."""
    usual = warnings.showwarning

    def show(message, category, *where, **more):
        if issubclass(category, InputWarning):
            print(f"grcd: note: {message}", file=sys.stderr)
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = show


def _interrupted() -> int:
    resumes = sys.argv[1:2] in (["train"], ["bench"])
    said = "interrupted; nothing is left half-written" + (". The same command goes on from here" if resumes else "")
    print(f"\ngrcd: {said}", file=sys.stderr)
    return 130


def _usage(error) -> Exception:
    """A usage error of the parser, in our words: what is known, and what is nearest."""
    command = getattr(getattr(error, "ctx", None), "command", None)
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
