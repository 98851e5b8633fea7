"""What the papers compare with. Importing this package registers its methods by its index."""

from neucrowd_tf.declare import registry

registry.register_index(__name__)
