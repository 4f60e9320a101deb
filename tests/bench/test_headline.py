"""`mxkernels bench headline --into`: an error names the file it is about."""

import json

from tests.bench.test_command import call
from tests.bench.test_records import synthetic


def test_what_the_headline_cannot_be_put_into_is_named(tmp_path):
    results_file = tmp_path / "run.json"
    results_file.write_text(json.dumps(synthetic()))
    plain = tmp_path / "plain.md"
    plain.write_text("no comments\n")
    for into, reason in (
        (plain, "expected a headline's two comments"),
        (tmp_path / "none.md", "No such file or directory"),
        (tmp_path, "Is a directory"),
    ):
        code, _, err = call("headline", results_file, "--into", into)
        assert code == 2
        assert err.startswith(f"mxkernels: --into={str(into)!r}: {reason}")
        assert err.count("\n") == 1
    assert plain.read_text() == "no comments\n"
    _, _, err = call("headline", results_file, "--into", plain, "--recipe", "even")
    assert err.startswith(f"mxkernels: {str(results_file)!r}: recipe='even': ")
