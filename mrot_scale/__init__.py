"""Anomaly scores by Mass Repulsing Optimal Transport, for tables of any size.

Importing this package loads no numerical library; each public name is loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from mrot_scale import plots
    from mrot_scale.config.job import Config
    from mrot_scale.config.layers import load_config
    from mrot_scale.config.method import MethodConfig
    from mrot_scale.estimator import MROT
    from mrot_scale.flagging import flagged
    from mrot_scale.jobs.explain_job import explain
    from mrot_scale.jobs.fit_job import fit
    from mrot_scale.jobs.ingest_job import ingest
    from mrot_scale.jobs.score_job import score
    from mrot_scale.jobs.service import open_scores, rollback, score_rows
    from mrot_scale.method.efforts import Problem, minibatch_efforts, transport_efforts
    from mrot_scale.scheduled.backfill import backfill
    from mrot_scale.scheduled.night import nightly
    from mrot_scale.thresholds import set_threshold, threshold
    from mrot_scale.verifying.everything import verify

_HOME_OF = {
    "Config": "mrot_scale.config.job",
    "MROT": "mrot_scale.estimator",
    "MethodConfig": "mrot_scale.config.method",
    "Problem": "mrot_scale.method.efforts",
    "backfill": "mrot_scale.scheduled.backfill",
    "explain": "mrot_scale.jobs.explain_job",
    "fit": "mrot_scale.jobs.fit_job",
    "flagged": "mrot_scale.flagging",
    "ingest": "mrot_scale.jobs.ingest_job",
    "load_config": "mrot_scale.config.layers",
    "minibatch_efforts": "mrot_scale.method.efforts",
    "nightly": "mrot_scale.scheduled.night",
    "open_scores": "mrot_scale.jobs.service",
    "rollback": "mrot_scale.jobs.service",
    "score": "mrot_scale.jobs.score_job",
    "score_rows": "mrot_scale.jobs.service",
    "set_threshold": "mrot_scale.thresholds",
    "threshold": "mrot_scale.thresholds",
    "transport_efforts": "mrot_scale.method.efforts",
    "verify": "mrot_scale.verifying.everything",
}

__all__ = [
    "MROT",
    "Config",
    "MethodConfig",
    "Problem",
    "__version__",
    "backfill",
    "explain",
    "fit",
    "flagged",
    "ingest",
    "load_config",
    "minibatch_efforts",
    "nightly",
    "open_scores",
    "plots",
    "rollback",
    "score",
    "score_rows",
    "set_threshold",
    "threshold",
    "transport_efforts",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name == "plots":
        return import_module("mrot_scale.plots")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'mrot_scale' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
