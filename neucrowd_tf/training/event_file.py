"""TensorBoard's event files, written without TensorFlow: one record for all scalars of a step."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path

# A `Summary.Value` of the plug-in "scalars": its metadata, and the type and shape of its tensor.
_METADATA = b"\x4a\x0d\x0a\x09\x0a\x07scalars\x20\x01"
_FLOAT32 = b"\x08\x01\x12\x00"


class EventFile:
    """A new event file in a folder; TensorBoard shows all files of one folder as one run."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}.v2"
        self._file = (folder / name).open("ab")
        self._write(_field(3, b"brain.Event:2"))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Writes the scalars of a step, by their tags, as `tf.summary.scalar` does."""
        summary = b""
        for tag, value in values.items():
            tensor = _FLOAT32 + _field(5, struct.pack("<f", value))
            summary += _field(1, _field(1, tag.encode()) + _field(8, tensor) + _METADATA)
        self._write(b"\x10" + _varint(step) + _field(5, summary))

    def flush(self) -> None:
        """Hands what was written to the operating system."""
        self._file.flush()

    def _write(self, content: bytes) -> None:
        """Writes an `Event` as a TFRecord: length, content, and a checksum of each."""
        event = struct.pack("<cd", b"\x09", time.time()) + content
        length = struct.pack("<Q", len(event))
        self._file.write(length + _checksum(length) + event + _checksum(event))


def _varint(value: int) -> bytes:
    """Returns a protocol buffer's integer: seven bits per byte, the lowest first."""
    parts = bytearray()
    while value > 127:
        parts.append((value & 127) | 128)
        value >>= 7
    return bytes([*parts, value])


def _field(number: int, content: bytes) -> bytes:
    """Returns a protocol buffer's field of bytes."""
    return _varint((number << 3) | 2) + _varint(len(content)) + content


_TABLE = list(range(256))  # what each byte contributes to CRC-32C
for _ in range(8):
    _TABLE = [(value >> 1) ^ (0x82F63B78 * (value & 1)) for value in _TABLE]


def _checksum(content: bytes) -> bytes:
    """Returns TFRecord's masked CRC-32C."""
    value = 0xFFFFFFFF
    for byte in content:
        value = _TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    value ^= 0xFFFFFFFF
    rotated = (value >> 15) | (value << 17)
    return struct.pack("<I", (rotated + 0xA282EAD8) & 0xFFFFFFFF)
