"""Downloads: pinned addresses, checked bytes, retries, and a clear word when nothing can be had."""

from __future__ import annotations

import hashlib
import http.server
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from data import catalogue, download, hotel, labelme, music
from neucrowd_tf import load_dataset
from neucrowd_tf.errors import DataError

CONTENT = b"0123456789" * 10_000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
SOURCE = download.Source("owner/repository", "c0ffee", "data/toy", {"toy.bin": DIGEST})


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; each answer may be spoilt first by what `server.faults` holds."""

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        fault = self.server.faults.pop(0) if self.server.faults else None
        if fault is None:
            super().do_GET()
        elif isinstance(fault, int):
            self.send_error(fault)
        elif fault == "hang up":
            self.connection.shutdown(socket.SHUT_RDWR)
        else:  # what follows is shorter than announced ("truncated") or other bytes ("damaged")
            body = CONTENT[: len(CONTENT) // 2] if fault == "truncated" else CONTENT[:-1] + b"x"
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Returns a function that serves a folder on localhost; the cache is empty and waits are
    short."""
    servers = []

    def start(folder: Path, *faults) -> http.server.ThreadingHTTPServer:
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), lambda *args: Handler(*args, directory=str(folder))
        )
        server.faults, server.requests = list(faults), []
        threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()
        servers.append(server)
        monkeypatch.setenv(download.BASE_VARIABLE, f"http://127.0.0.1:{server.server_port}/")
        return server

    monkeypatch.setenv("NEUCROWD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    folder = tmp_path / "site" / "toy"
    folder.mkdir(parents=True)
    (folder / "toy.bin").write_bytes(CONTENT)
    return folder.parent


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_addresses_are_pinned(monkeypatch) -> None:
    monkeypatch.delenv(download.BASE_VARIABLE, raising=False)
    pinned = "https://raw.githubusercontent.com/owner/repository/c0ffee/data/toy/"
    assert SOURCE.address("toy") == pinned
    for source in map(catalogue.source, ("hotel", "labelme", "music")):
        assert len(source.commit) == 40
        assert all(len(digest) == 64 for digest in source.files.values())


def test_downloads_once_and_quietly(served, toy, tmp_path, capfd) -> None:
    server = served(toy)
    folder = download.locate("toy", ["toy.bin"], None, SOURCE)
    assert folder == tmp_path / "cache" / "toy" and (folder / "toy.bin").read_bytes() == CONTENT
    assert download.locate("toy", ["toy.bin"], None, SOURCE) == folder
    assert server.requests == ["/toy/toy.bin"] and leftovers(folder) == ["toy.bin"]
    assert capfd.readouterr().err == ""  # not a terminal: no progress bar


def test_damaged_cache_is_downloaded_again(served, toy, tmp_path) -> None:
    server = served(toy)
    path = tmp_path / "cache" / "toy" / "toy.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT[:100])
    download.locate("toy", ["toy.bin"], None, SOURCE)
    assert path.read_bytes() == CONTENT and len(server.requests) == 1


@pytest.mark.parametrize("fault", ["truncated", "damaged", "hang up", 500, 503, 429])
def test_tries_again(served, toy, fault) -> None:
    server = served(toy, fault, fault)
    folder = download.locate("toy", ["toy.bin"], None, SOURCE)
    assert (folder / "toy.bin").read_bytes() == CONTENT and len(server.requests) == 3


@pytest.mark.parametrize(
    ("fault", "message", "requests"),
    [
        ("truncated", r"50000 bytes read, 50000 more expected", 4),
        ("damaged", rf"expected {DIGEST} but got [0-9a-f]{{64}}", 4),
        (500, r"500 Server Error", 4),
    ],
)
def test_gives_up_and_leaves_nothing(served, toy, tmp_path, fault, message, requests) -> None:
    server = served(toy, *[fault] * 4)
    with pytest.raises(
        DataError,
        match=rf"toy/toy\.bin: could not be downloaded from http://.*: .*{message}.*--data_dir",
    ) as caught:
        download.locate("toy", ["toy.bin"], None, SOURCE)
    assert "\n" not in str(caught.value) and len(server.requests) == requests
    assert leftovers(tmp_path / "cache") == []


def test_offline(served, monkeypatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    monkeypatch.setenv(download.BASE_VARIABLE, f"http://127.0.0.1:{port}")
    with pytest.raises(
        DataError,
        match=r"could not be downloaded .*when offline, name a local copy with --data_dir",
    ):
        download.download("toy", ["toy.bin"], SOURCE)


def test_progress_bar_on_a_terminal(served, toy, monkeypatch, capsys) -> None:
    served(toy)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    download.locate("toy", ["toy.bin"], None, SOURCE)
    shown = capsys.readouterr().err
    assert "\r100%" in shown and "100k/100k" in shown


def test_local_folder(tmp_path) -> None:
    custom = tmp_path / "toy"
    custom.mkdir()
    with pytest.raises(DataError, match=r"expected the file toy/toy\.bin, received none"):
        download.locate("toy", ["toy.bin"], tmp_path, SOURCE)
    (custom / "toy.bin").write_bytes(b"")
    assert (
        download.locate("toy", ["toy.bin"], tmp_path)
        == custom
        == download.locate("toy", ["toy.bin"], custom)
    )
    with pytest.raises(DataError, match=r"nowhere: there is no such folder.*--data_dir"):
        download.locate("toy", ["toy.bin"], tmp_path / "nowhere")
    with pytest.raises(
        DataError, match=r"toy: expected --data_dir to name a folder with toy/toy\.bin"
    ):
        download.locate("toy", ["toy.bin"], None)


@pytest.mark.parametrize("module", [hotel, labelme, music])
def test_published_files_come_through_whole(served, data_dir, module) -> None:
    """The digests in the code are those of the published files, and what was downloaded loads as
    the local copy does.
    """
    server = served(data_dir)
    first = module.load(None)
    requests = len(server.requests)
    assert requests == len(catalogue.source(module.__name__.removeprefix("data.")).files)
    local = module.load(data_dir)
    assert (first.features == local.features).all() and first.annotations == local.annotations
    module.load(None)
    assert len(server.requests) == requests


def test_from_python_the_argument_is_named() -> None:
    with pytest.raises(DataError, match=r"^no: there is no such folder\. .* with data_dir=\.$"):
        load_dataset("music", "no")
