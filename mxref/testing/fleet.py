"""Failures shared by a fleet: Hypothesis' own example databases, named by one string.

Needs Hypothesis (`mxref[verify]`), for Redis the extra `mxref[fleet]`.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from mxref.testing.drawing import (
    DirectoryBasedExampleDatabase,
    ExampleDatabase,
    GitHubArtifactDatabase,
    MultiplexedDatabase,
    ReadOnlyDatabase,
)

LOCAL = Path(".hypothesis") / "examples"
"""Where Hypothesis keeps examples by default, below the current directory."""

_REDIS = ("redis", "rediss", "unix")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.S)
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_EXPECTED = "'redis://host:port/number', 'github://owner/repository' or the name of a directory"


def database(url_or_path: str | Path, *, local: str | Path | None = LOCAL) -> ExampleDatabase:
    """The example database that a string names, combined with the local one.

    Give it to `hypothesis.settings(database=...)` or to `mxref.testing.fuzz`: what one process
    finds, every other one with the same database replays first.

    =========================  =========================================================
    redis://host:6379/0        read and written by all at once; also rediss:// and unix://
    github://owner/repository  the latest artifact "hypothesis-example-db" of its workflows,
                               read only; GITHUB_TOKEN in the environment
    a directory                Hypothesis' own files: a network file system, a CI cache
    =========================  =========================================================

    Args:
        url_or_path: one of these.
        local: the local directory: failures are saved there too, and replayed from there. None
            for none.

    Raises:
        TypeError: url_or_path or local is neither a string nor a Path.
        ValueError: an unknown scheme, an incomplete address, a path that is a file.
        ModuleNotFoundError: redis is not installed.
        ConnectionError: the Redis server does not answer.

    >>> database("ftp://host")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: url_or_path='ftp://host': unknown scheme 'ftp', expected 'redis://host:port/...
    >>> database("shared", local=None)
    DirectoryBasedExampleDatabase(PosixPath('shared'))
    """
    near = None if local is None else _directory(local, "local")
    if not isinstance(url_or_path, (str, Path)):
        kind = type(url_or_path).__name__
        raise TypeError(f"url_or_path={url_or_path!r}: expected {_EXPECTED}, got {kind}")
    matched = _SCHEME.fullmatch(url_or_path) if isinstance(url_or_path, str) else None
    far: ExampleDatabase
    if matched is None:
        far = _directory(url_or_path, "url_or_path")
    elif matched[1] == "github":
        far = _github(url_or_path, matched[2])
    elif matched[1] in _REDIS:
        far = _redis(str(url_or_path))
    else:
        raise ValueError(
            f"url_or_path={url_or_path!r}: unknown scheme {matched[1]!r}, expected {_EXPECTED}"
        )
    return far if near is None or near == far else MultiplexedDatabase(near, far)


def _directory(path: str | Path, name: str) -> DirectoryBasedExampleDatabase:
    if not isinstance(path, (str, Path)):
        kind = type(path).__name__
        raise TypeError(f"{name}={path!r}: expected the name of a directory, got {kind}")
    if not str(path).strip():
        raise ValueError(f"{name}={path!r}: expected the name of a directory")
    if Path(path).exists() and not Path(path).is_dir():
        raise ValueError(f"{name}={str(path)!r}: a file, expected the name of a directory")
    return DirectoryBasedExampleDatabase(path)


def _github(url: str | Path, repository: str) -> ReadOnlyDatabase:
    if not _REPOSITORY.fullmatch(repository):
        raise ValueError(f"url_or_path={url!r}: expected 'github://owner/repository'")
    owner, _, name = repository.partition("/")
    return ReadOnlyDatabase(GitHubArtifactDatabase(owner, name))


def _redis(url: str) -> ExampleDatabase:
    try:
        redis: Any = import_module("redis")
        from hypothesis.extra.redis import RedisExampleDatabase
    except ImportError as error:
        raise ModuleNotFoundError(
            f"url_or_path={url!r}: redis is not installed, pip install 'mxref[fleet]'",
            name="redis",
        ) from error
    try:
        server: Any = redis.Redis.from_url(url, socket_connect_timeout=10)
        server.ping()
    except (redis.ConnectionError, redis.TimeoutError) as error:
        raise ConnectionError(f"url_or_path={url!r}: no answer ({_line(error)})") from None
    except (redis.RedisError, ValueError) as error:
        raise ValueError(f"url_or_path={url!r}: {_line(error)}") from None
    return RedisExampleDatabase(server)


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
