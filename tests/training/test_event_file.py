"""TensorBoard's event files: what TensorFlow's own readers see in them."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

from neucrowd_tf.training.run import Run


def test_what_is_read(tmp_path: Path) -> None:
    run = Run(tensorboard=tmp_path).stage("phase")
    run.scalars(300, {"loss": 0.25, "accuracy": float("nan")})
    run.scalars(301, {"loss": -1.0})
    run.flush()
    (path,) = tmp_path.glob("events.out.tfevents.*")
    # `TFRecordDataset` fails where a checksum is wrong.
    records = [record.numpy() for record in tf.data.TFRecordDataset(str(path))]
    header, *events = [tf.compat.v1.Event.FromString(record) for record in records]
    assert header.file_version == "brain.Event:2"
    assert [event.step for event in events] == [300, 301], "one record a step"
    values = {each.tag: float(tf.make_ndarray(each.tensor)) for each in events[0].summary.value}
    assert values["phase/loss"] == 0.25
    assert values["phase/accuracy"] != values["phase/accuracy"], "not a number"
    metadata = events[1].summary.value[0].metadata
    assert metadata.plugin_data.plugin_name == "scalars"
    assert metadata.data_class == tf.compat.v1.SummaryMetadata().data_class + 1
