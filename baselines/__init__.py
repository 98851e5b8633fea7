"""What the papers compare with. Importing this package registers its methods by its index."""

from neucrowd_tf import registry

registry.register_index(__name__)
