"""Controls: variants of the papers' methods that only a study of ours needs.

Each module registers its methods, so that suites can name them.
"""

from reproduction.controls import crowding, doctor_net  # noqa: F401
