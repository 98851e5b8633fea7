"""Exports of annotation tools, one file a tool, as plain columns."""

from neucrowd_tf.io.importers.catalogue import TOOLS, detect, read_export
from neucrowd_tf.io.importers.export import Export
from neucrowd_tf.io.importers.frames import from_table

__all__ = ["TOOLS", "Export", "detect", "from_table", "read_export"]
