"""Hypothesis, or one line that names the extra: no other file of mxref imports it unasked."""

try:
    from hypothesis import HealthCheck, Verbosity, given, note, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st
    from hypothesis.database import (
        DirectoryBasedExampleDatabase,
        ExampleDatabase,
        GitHubArtifactDatabase,
        MultiplexedDatabase,
        ReadOnlyDatabase,
    )
    from hypothesis.errors import Flaky
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    raise ModuleNotFoundError(
        "this part of mxref.testing needs Hypothesis: pip install 'mxref[verify]'",
        name="hypothesis",
    ) from None

__all__ = [
    "DirectoryBasedExampleDatabase", "ExampleDatabase", "Flaky", "GitHubArtifactDatabase",
    "HealthCheck", "MultiplexedDatabase", "ReadOnlyDatabase", "Verbosity", "given", "note",
    "seeded", "settings", "st",
]  # fmt: skip
