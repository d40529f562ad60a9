"""Anomaly scores by Mass Repulsing Optimal Transport, for tables of any size.

Importing this package loads no numerical library; each public name is loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from mrot_scale.config import MethodConfig, load_config
    from mrot_scale.estimator import MROT
    from mrot_scale.method.efforts import Problem, minibatch_efforts, transport_efforts

_HOME_OF = {
    "MROT": "mrot_scale.estimator",
    "MethodConfig": "mrot_scale.config",
    "Problem": "mrot_scale.method.efforts",
    "load_config": "mrot_scale.config",
    "minibatch_efforts": "mrot_scale.method.efforts",
    "transport_efforts": "mrot_scale.method.efforts",
}

__all__ = [
    "MROT",
    "MethodConfig",
    "Problem",
    "__version__",
    "load_config",
    "minibatch_efforts",
    "transport_efforts",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'mrot_scale' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
