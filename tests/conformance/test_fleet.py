"""A fleet shares its failures: directory, GitHub artifact, and a real Redis server."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis.database import (
    DirectoryBasedExampleDatabase,
    GitHubArtifactDatabase,
    MultiplexedDatabase,
    ReadOnlyDatabase,
)

import mxref
from mxref.testing import fleet

ROOT = Path(mxref.__file__).parents[1]

TARGET = """
import json, sys, torch, mxref
from mxref.testing import fuzz

class DropsNan:
    recipe, dtypes = "floor", (torch.bfloat16,)
    seen = []

    def quantize(self, x):
        self.seen.append(bool(x.isnan().any()))
        return mxref.quantize(torch.where(x.isnan(), 0, x), "floor")

result = fuzz(DropsNan(), seconds=60, seed=int(sys.argv[2]), database=sys.argv[1])
first = DropsNan.seen.index(True)
print(json.dumps({"passed": result.passed, "first": first, "shape": list(result.example.shape)}))
"""


def hunt(url: str, folder: Path, seed: int) -> dict:
    """A process of its own, in a folder of its own, that fuzzes a wrong target."""
    folder.mkdir(exist_ok=True)
    ran = subprocess.run(
        [sys.executable, "-c", TARGET, url, str(seed)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.fixture
def server(tmp_path):
    """The address of a redis-server of this test, on a free port, in memory alone."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("needs redis-server: apt-get install redis-server")
    redis = pytest.importorskip("redis", reason="needs redis: pip install 'mxref[fleet]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(tmp_path)]
    process = subprocess.Popen([program, "--port", str(port), *options], stdout=subprocess.DEVNULL)
    try:
        client = redis.Redis(port=port)
        end = time.monotonic() + 30
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:
                assert time.monotonic() < end, "redis-server does not start"
                time.sleep(0.05)
        client.close()
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(timeout=30)


def test_what_one_process_finds_another_replays_from_redis(server, tmp_path):
    found = hunt(server, tmp_path / "one", seed=1)
    assert not found["passed"]
    assert found["first"] > 0, "found by drawing"
    assert list((tmp_path / "one" / fleet.LOCAL).rglob("*")), "saved locally too"
    # as another machine: nothing local, another seed
    replayed = hunt(server, tmp_path / "two", seed=2)
    assert (replayed["passed"], replayed["first"]) == (False, 0)
    assert replayed["shape"] == found["shape"]
    # and without what Redis holds it has to be drawn again
    import redis

    redis.Redis.from_url(server).flushall()
    assert hunt(server, tmp_path / "three", seed=2)["first"] > 0


def test_redis_examples_are_saved_fetched_and_deleted(server, tmp_path):
    shared = fleet.database(server, local=None)
    fleet.database(server, local=tmp_path).save(b"key", b"value")
    assert set(shared.fetch(b"key")) == {b"value"}
    shared.delete(b"key", b"value")
    assert set(shared.fetch(b"key")) == set()


def test_a_server_that_does_not_answer_is_one_line():
    pytest.importorskip("redis")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConnectionError, match="no answer") as caught:
        fleet.database(f"redis://127.0.0.1:{port}/0")
    assert "\n" not in str(caught.value)


def test_without_redis_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'mxref\[fleet\]'") as caught:
        fleet.database("redis://localhost")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "asked",
    ["import mxref.testing.strategies", "import mxref.testing.fleet", "mxref.testing.fuzz"],
)
def test_without_hypothesis_the_extra_is_named(asked):
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import mxref.testing\n"
        f"try:\n    {asked}\n"
        "except ModuleNotFoundError as error:\n    print(error.name, error)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    wanted = "this part of mxref.testing needs Hypothesis: pip install 'mxref[verify]'"
    assert ran.stdout == f"hypothesis {wanted}\n", ran.stderr


def test_a_directory_is_combined_with_the_local_one(tmp_path):
    far, near = tmp_path / "far", tmp_path / "near"
    shared = fleet.database(str(far), local=near)
    assert isinstance(shared, MultiplexedDatabase)
    shared.save(b"key", b"value")
    for place in (far, near):
        assert set(DirectoryBasedExampleDatabase(place).fetch(b"key")) == {b"value"}
    DirectoryBasedExampleDatabase(far).save(b"key", b"of another machine")
    assert set(shared.fetch(b"key")) == {b"value", b"of another machine"}
    assert fleet.database(near, local=near) == DirectoryBasedExampleDatabase(near)


def test_a_github_artifact_is_read_and_never_written(tmp_path, monkeypatch):
    """The artifact is one that was fetched a moment ago: no network."""
    DirectoryBasedExampleDatabase(tmp_path / "ci").save(b"key", b"value")
    stamp = datetime.now(UTC).isoformat().replace(":", "_")
    cache = tmp_path / "cache"
    cache.mkdir()
    with zipfile.ZipFile(cache / f"{stamp}.zip", "w") as artifact:
        for path in sorted((tmp_path / "ci").rglob("*")):
            artifact.write(path, path.relative_to(tmp_path / "ci"))
    shared = fleet.database("github://owner/repo", local=tmp_path / "near")
    assert isinstance(shared, MultiplexedDatabase)
    wrapped = shared._wrapped[1]
    assert isinstance(wrapped, ReadOnlyDatabase)
    github = wrapped._wrapped
    assert (github.owner, github.repo) == ("owner", "repo")
    own = GitHubArtifactDatabase("owner", "repo", path=cache)
    combined = MultiplexedDatabase(shared._wrapped[0], ReadOnlyDatabase(own))
    assert set(combined.fetch(b"key")) == {b"value"}
    combined.save(b"key", b"new")
    assert set(combined.fetch(b"key")) == {b"value", b"new"}
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize(
    ("url", "kind", "part"),
    [
        ("ftp://host/0", ValueError, "unknown scheme 'ftp'"),
        ("http://host", ValueError, "'redis://host:port/number', 'github://owner/repository'"),
        ("github://owner", ValueError, "github://owner/repository"),
        ("github://owner/repo/more", ValueError, "github://owner/repository"),
        ("github://", ValueError, "github://owner/repository"),
        ("", ValueError, "url_or_path=''"),
        ("  ", ValueError, "url_or_path='  '"),
        (None, TypeError, "url_or_path=None"),
        (3, TypeError, "url_or_path=3"),
        (str(Path(__file__)), ValueError, "a file"),
    ],
)
def test_wrong_addresses_are_named(url, kind, part):
    with pytest.raises(kind, match=part):
        fleet.database(url)


@pytest.mark.parametrize("url", ["redis://host:port/0", "redis://localhost:6379/0?db=x"])
def test_a_malformed_redis_address_is_one_line(url):
    pytest.importorskip("redis")
    with pytest.raises((ValueError, ConnectionError), match="url_or_path="):
        fleet.database(url)


def test_a_wrong_local_directory_is_named():
    with pytest.raises(TypeError, match="local=3"):
        fleet.database("shared", local=3)
