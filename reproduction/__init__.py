"""The papers' tables and figures: printed figures, suites, figures, tables, the page of results."""
