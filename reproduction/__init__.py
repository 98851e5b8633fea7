"""The papers' tables and figures: printed figures, suites, figures, tables, the page of results.

Importing this package registers the suites and the controls that they run.
"""

from reproduction import catalogue, controls  # noqa: F401

catalogue.register()
