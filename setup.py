"""Puts the rivals and the loaders into wheels; pyproject.toml has all else.

In a wheel the folders `baselines/` and `data/` are `neucrowd_tf.plugins.baselines` and
`neucrowd_tf.plugins.data`, names that cannot collide. A checkout, also one that is installed with
`pip install -e`, imports the folders as they lie: each class has one name.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PLUGINS = ("baselines", "data")


class BuildWithPlugins(build_py):
    """Copies the plug-ins beside the package's modules, but for an editable installation."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for name in PLUGINS:
            target = Path(self.build_lib, "neucrowd_tf", "plugins", name)
            self.mkpath(str(target))
            for path in sorted(Path(name).iterdir()):
                if path.suffix in (".py", ".json", ".toml"):
                    self.copy_file(str(path), str(target / path.name))


setup(cmdclass={"build_py": BuildWithPlugins})
