"""Clusters: what is unsafe or cannot be is refused, unless allowed by a file or a flag."""

from pathlib import Path
from typing import Any

import pytest

from mrot_scale.config.layers import load_config
from tests.config.given import SLURM, cluster_complaint, complaint, written


@pytest.mark.parametrize(
    "address",
    [
        "tls://scheduler:8786",
        "tls://10.0.0.1:8786",
        "tcp://127.0.0.1:8786",
        "tcp://127.8.0.1:8786",
        "tcp://localhost:1",
        "tcp://[::1]:8786",
    ],
)
def test_addresses_that_nobody_can_listen_to_are_fine(address: str) -> None:
    config = load_config(overrides={"cluster": {"address": address}})
    assert (config.cluster.kind, config.cluster.address) == ("address", address)


@pytest.mark.parametrize(
    "address", ["tcp://scheduler:8786", "tcp://10.0.0.1:1", "tcp://127.evil.com:1", "tcp://[::]:1"]
)
def test_unencrypted_addresses_elsewhere_must_be_allowed(address: str) -> None:
    told = cluster_complaint(address=address)
    assert "--insecure" in told
    assert "tls://" in told
    load_config(overrides={"cluster": {"address": address, "insecure": True}})


@pytest.mark.parametrize(
    "address",
    [
        "scheduler:8786",
        "http://scheduler:8786",
        "tls://scheduler",
        "tls://",
        "",
        "tcp://127.0.0.1:1@evil:8786",
        "tcp://127.0.0.1:1/../evil:8786",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    assert "must look like tls://host:8786" in cluster_complaint(address=address, kind="address")


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({"kind": "address"}, "needs an address"),
        ({"kind": "local", "address": "tls://there:1"}, "but kind is local"),
        ({"kind": SLURM, "address": "tls://there:1"}, f"but kind is {SLURM}"),
        ({"kind": "lokal"}, "kind must be inline, local, address or module:Class"),
        ({"kind": "os:system()"}, "kind must be"),
        ({"kind": "dask_jobqueue.SLURMCluster"}, "kind must be"),
        ({"kind": ":SLURMCluster"}, "kind must be"),
        ({"arguments": {"cores": 1}}, "arguments are for a class"),
        ({"workers": 0}, "greater than or equal to 1"),
        ({"timeout_s": 0}, "greater than 0"),
        ({"kind": "os:system"}, "--allow-class"),
        ({"kind": "dask_jobqueue_evil:Cluster"}, "--allow-class"),
        ({"kind": "evil.dask:Cluster"}, "--allow-class"),
    ],
)
def test_clusters_that_cannot_be_are_refused(cluster: dict[str, Any], message: str) -> None:
    assert message in cluster_complaint(**cluster)


@pytest.mark.parametrize("kind", [SLURM, "dask_cloudprovider.aws:FargateCluster"])
def test_classes_of_known_packages_are_fine(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, f"cluster: {{kind: '{kind}', arguments: {{cores: 4}}}}")
    config = load_config(path)
    assert config.cluster.is_class
    assert config.cluster.arguments == {"cores": 4}


def test_other_classes_are_allowed_on_demand(tmp_path: Path) -> None:
    path = written(tmp_path, "cluster: {kind: 'ours.clusters:Ours'}")
    assert "settings.yaml: cluster: kind ours.clusters:Ours is outside" in complaint(path)
    config = load_config(path, overrides={"cluster": {"allow_class": True}})
    assert config.cluster.kind == "ours.clusters:Ours"


def test_complaints_about_a_cluster_do_not_repeat_its_arguments() -> None:
    told = cluster_complaint(kind="ours:Ours", arguments={"password": "hunter2"})
    assert "hunter2" not in told
