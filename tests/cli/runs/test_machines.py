"""--distribute=multi_worker: two processes train as one does, and go on after one of them died."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

RUNS = ["--dataset=digits", "--method=mv_lr,crowd_layer", "--hparam=crowd_layer.dropout=0.0"]
RUNS += ["--hparam=crowd_layer.epochs=12", "--checkpoint_seconds=0", "--report=false"]
RUN = Path("digits") / "crowd_layer" / "seed-0"


def begin(repository: Path, output: Path, *flags: str) -> list[subprocess.Popen[str]]:
    """Starts two processes that train together."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    cluster = {"worker": [f"127.0.0.1:{each.getsockname()[1]}" for each in held]}
    for each in held:
        each.close()
    command = [sys.executable, str(repository / "run_experiment.py"), *RUNS, *flags]
    command += [f"--output_dir={output}", "--distribute=multi_worker"]
    return [
        subprocess.Popen(
            command,
            env=dict(os.environ, TF_CONFIG=json.dumps({"cluster": cluster, "task": task})),
            stderr=subprocess.PIPE,
            text=True,
        )
        for task in ({"type": "worker", "index": index} for index in range(2))
    ]


def end(running: list[subprocess.Popen[str]]) -> list[str]:
    message = [process.communicate(timeout=300)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], message
    return message


def probabilities(output: Path) -> np.ndarray:
    return pd.read_csv(output / RUN / "predictions.csv").filter(like="p_").to_numpy()


def test_two_processes_do_what_one_does_and_go_on_after_a_death(
    repository: Path, tmp_path: Path
) -> None:
    alone = [sys.executable, str(repository / "run_experiment.py"), *RUNS]
    subprocess.run([*alone, f"--output_dir={tmp_path / 'one'}"], check=True, timeout=300)
    message = end(begin(repository, tmp_path / "two"))
    assert "digits mv_lr seed 0: ok: only the first worker trains, on one device" in message[1]
    assert "digits crowd_layer seed 0: ok: trained together" in message[1]
    np.testing.assert_allclose(
        probabilities(tmp_path / "one"), probabilities(tmp_path / "two"), atol=1e-4
    )

    running = begin(repository, tmp_path / "killed")
    while not (tmp_path / "killed" / RUN / "checkpoints" / "train.npz").exists():
        time.sleep(0.01)
        assert running[0].poll() is None
    os.kill(running[1].pid, signal.SIGKILL)
    error = running[0].communicate(timeout=60)[1]
    assert running[0].returncode == 1
    assert error.splitlines()[-1].startswith("error: a worker of TF_CONFIG was lost")
    assert not (tmp_path / "killed" / RUN / "metrics.json").exists()
    end(begin(repository, tmp_path / "killed", "--resume"))
    for name in ("predictions.csv", "annotators.csv"):
        result = (tmp_path / "killed" / RUN / name).read_bytes()
        assert result == (tmp_path / "two" / RUN / name).read_bytes()
