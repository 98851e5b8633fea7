"""For tools that look for a setup.py; pyproject.toml has what is packaged and required."""

from setuptools import setup

setup()
