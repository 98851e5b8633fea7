"""Python in processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def python(repository: Path, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
    """Runs Python in the checkout, which is on its path; options are those of `subprocess.run`."""
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    defaults = {"cwd": repository, "env": environment, "timeout": 300, "check": False}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, **{**defaults, **options}
    )
