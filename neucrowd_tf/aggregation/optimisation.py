"""SciPy's optimisers, which are slow to load and most commands do without."""

from __future__ import annotations

from typing import Any


def minimize(*arguments: Any, **options: Any) -> Any:
    """Calls `scipy.optimize.minimize`."""
    from scipy import optimize

    return optimize.minimize(*arguments, **options)


def minimize_scalar(*arguments: Any, **options: Any) -> Any:
    """Calls `scipy.optimize.minimize_scalar`."""
    from scipy import optimize

    return optimize.minimize_scalar(*arguments, **options)
