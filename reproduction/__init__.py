"""The papers' tables and figures: printed figures, suites, figures, tables, the page of results.

Importing this package registers the suites, and the controls that they run, by its index.
"""

from neucrowd_tf.declare import registry

registry.register_index(__name__)
