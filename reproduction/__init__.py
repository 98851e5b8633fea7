"""The papers' tables and figures: printed figures, suites, figures, tables, the page of results.

Importing this package registers the suites and the printed figures.
"""

from reproduction import catalogue, printed

catalogue.register()
printed.register()
