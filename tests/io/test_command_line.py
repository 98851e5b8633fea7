"""A command's parser says what it expected of an option, and what it received."""

from __future__ import annotations

import pytest

from neucrowd_tf.errors import UsageError
from neucrowd_tf.io.command_line import Parser


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--budget=x", "--file=f"], "--budget: expected a whole number, received 'x'"),
        (["--file"], "--file: expected a value, received none"),
        ([], "expected --file, received none"),
        (["--file=f", "--more=1"], r"expected options .*, received --more=1"),
        (["--file=f", "--kind=c"], r"--kind: expected one of .*a.*b.*, received 'c'"),
    ],
)
def test_errors(argv: list[str], message: str) -> None:
    parser = Parser(allow_abbrev=False)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--file", required=True)
    parser.add_argument("--kind", choices=("a", "b"))
    with pytest.raises(UsageError, match=f"^{message}$"):
        parser.parse_args(argv)
