"""Benchmark datasets, one module each; importing this package registers them by its index."""

from neucrowd_tf.declare import registry

registry.register_index(__name__)
