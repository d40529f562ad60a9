"""Entropic prices to full accuracy, by Newton steps from wherever Sinkhorn's iterations got to.

One far row is enough to make Sinkhorn's error fall like one over the number of iterations: rows
that hardly exchange mass take for ever to agree on prices. Newton's steps see that coupling.

`K` is the cost divided by the regularisation, `log_v` the price of each receiver in the same unit;
the plan is `exp(log_u + log_v - K)`, where `log_u` is chosen so that every row sends its mass.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]

_RIDGE = 1e-13
_SUFFICIENT = 1e-4
_SMALLEST_STEP = 1e-10


def newton_prices(
    K: Floats, masses: Floats, log_v: Floats, *, tolerance: float, max_steps: int
) -> tuple[Floats, Floats]:
    """Return `(log_u, log_v)` after as many steps as the tolerance on the marginals needs."""
    log_u = sender_prices(K, masses, log_v)
    for _ in range(max_steps):
        plan = np.exp(log_u[:, None] + log_v - K)
        missing = masses - plan.sum(axis=0)
        if np.abs(missing).sum() <= tolerance:
            break
        direction = _newton_direction(plan, missing)
        log_u, log_v = _line_search(K, masses, log_u, log_v, direction, missing)
    return log_u, log_v


def sender_prices(K: Floats, masses: Floats, log_v: Floats) -> Floats:
    """Return the prices at which every row sends exactly its mass."""
    return np.asarray(np.log(masses) - logsumexp(log_v - K, axis=1))


def _newton_direction(plan: Floats, missing: Floats) -> Floats:
    """Return the change of receiver prices that would meet the masses if all were linear."""
    sent, received = plan.sum(axis=1), plan.sum(axis=0)
    curvature = np.diag(received) - plan.T @ (plan / sent[:, None])
    # Prices are only defined up to a constant: the ridge makes the matrix invertible.
    curvature[np.diag_indices_from(curvature)] += _RIDGE * received.mean()
    direction = np.linalg.solve(curvature, missing)
    return np.asarray(direction - direction.mean())


def _line_search(
    K: Floats, masses: Floats, log_u: Floats, log_v: Floats, direction: Floats, missing: Floats
) -> tuple[Floats, Floats]:
    """Return the prices after the longest halved step that raises the dual objective enough."""
    before = float(masses @ (log_u + log_v))
    slope = float(missing @ direction)
    slack = 1e-14 * abs(before)
    step = 1.0
    while True:
        new_v = log_v + step * direction
        new_u = sender_prices(K, masses, new_v)
        gain = float(masses @ (new_u + new_v)) - before
        if gain >= _SUFFICIENT * step * slope - slack or step < _SMALLEST_STEP:
            return new_u, new_v
        step /= 2
