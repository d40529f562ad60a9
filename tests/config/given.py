"""Settings given by files and flags, and what is complained of them."""

from pathlib import Path
from typing import Any

import pytest

from mrot_scale.config.layers import load_config
from mrot_scale.errors import ConfigError

CONFIGS = Path(__file__).parents[2] / "configs"
SLURM = "dask_jobqueue:SLURMCluster"


def written(folder: Path, text: str, name: str = "settings.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def complaint(path: Path | None = None, **sources: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path, **sources)
    assert caught.value.exit_code == 78
    return str(caught.value)


def cluster_complaint(**cluster: Any) -> str:
    return complaint(overrides={"cluster": cluster})
