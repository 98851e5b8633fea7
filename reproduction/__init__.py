"""The papers' tables and figures: printed figures, suites, figures, tables, the page of results.

Importing this package registers the suites, the controls that they run and the printed figures.
"""

from reproduction import catalogue, controls, printed  # noqa: F401

catalogue.register()
printed.register()
