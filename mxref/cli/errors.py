"""What a command raises when the call is wrong: one line for people, exit code 2."""

from collections.abc import Iterable


class WrongCallError(Exception):
    """The call or the target is wrong; the message is the one line that is shown."""


def unknown(option: str, value: str, allowed: Iterable[str]) -> WrongCallError:
    """The error for a value that an option does not take."""
    return WrongCallError(f"{option}={value!r}: expected one of {', '.join(allowed)}")


def one_line(text: object) -> str:
    """The text with its line breaks and runs of spaces as single spaces."""
    return " ".join(str(text).split())
