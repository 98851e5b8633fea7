"""Packaging of neucrowd_tf.

All requirements are declared here and pinned in requirements.lock.
"""

from __future__ import annotations

import pathlib

from setuptools import find_packages, setup

HERE = pathlib.Path(__file__).parent
README = HERE / "README.md"

# The lowest end of each range is what `make test-lowest` installs (requirements-lowest.lock), the
# newest is the lock.
RUNTIME = [
    "tensorflow>=2.18,<2.22",
    "keras>=3.8,<4",
    "tf-keras>=2.18,<2.22",
    "tensorflow-probability>=0.25,<0.26",
    "tensorboard>=2.18,<2.22",
    "numpy>=1.26",
    "scipy>=1.13",
    "scikit-learn>=1.6,<2",
    "pandas>=2.2,<4",
    "absl-py>=2.1",
    "h5py>=3.11",
    "jinja2>=3.1",
    "threadpoolctl>=3.5",
    "pooch>=1.8",
    "requests>=2.31",
    "filelock>=4.2",  # whose waiters see that a lock's file is gone
    "tqdm>=4.66",
]
PLOTS = ["matplotlib>=3.9"]
PARQUET = ["pyarrow>=17"]
IMAGES = ["pillow>=10"]
ENCODER = ["onnxruntime>=1.20", "tokenizers>=0.20"]
DASK = [*PARQUET, "distributed>=2024.8"]
TEST = [
    *PLOTS,
    *DASK,
    *IMAGES,
    *ENCODER,
    "pytest>=8",
    "pytest-xdist>=3.6",
    "hypothesis>=6.100",
    "ruff>=0.8",
    "mypy>=1.13",
    "pandas-stubs>=2.2",
    "imbalanced-learn>=0.13",
    "crowd-kit==1.4.2",
    "build>=1.2",
]
DOCS = ["mkdocs>=1.6,<2", "mkdocs-material>=9.5", "mkdocstrings-python>=2", "latex2mathml>=3.77"]

setup(
    name="neucrowd-tf",
    version="0.2.0",
    description=(
        "Learning from few, noisy, sparse and imbalanced crowd labels: NeuCrowd, RLL, CrowdInG,"
        " DASC and ICED in TensorFlow and Keras"
    ),
    long_description=README.read_text(encoding="utf-8") if README.exists() else "",
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.11,<3.14",
    packages=find_packages(include=["neucrowd_tf", "neucrowd_tf.*"]),
    package_data={
        "neucrowd_tf": [
            "py.typed",
            "index.json",
            "report/templates/*",
            "certainty/*.json",
            "*/*.toml",
        ]
    },
    install_requires=RUNTIME,
    extras_require={
        "plots": PLOTS,
        "parquet": PARQUET,
        "images": IMAGES,
        "dask": DASK,
        "gpu": ["tensorflow[and-cuda]>=2.18,<2.22"],
        "onnx": ["tf2onnx>=1.17", "onnxruntime>=1.20"],
        "encoder": ENCODER,
        "smote": ["imbalanced-learn>=0.13"],
        "docs": DOCS,
        "test": TEST,
    },
    entry_points={"console_scripts": ["neucrowd = neucrowd_tf.__main__:console_main"]},
    author="The neucrowd_tf authors",
    keywords="crowdsourcing annotators noisy-labels truth-inference aggregation tensorflow keras",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
