"""What a night is watched by: a Prometheus textfile, and the same figures as JSON.

The only importer of prometheus_client.
"""

from typing import Any

from mrot_scale.scheduled.layout import Layout, json_bytes, read_json
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import Entry

TEXT, JSON = "metrics.prom", "metrics.json"

_HELP = {
    "last_success_timestamp_seconds": "When scores were last published.",
    "last_run_timestamp_seconds": "When a run last ended, however it did.",
    "last_exit_code": "Exit code of the last run.",
    "rows_scored": "Rows of the last partition published.",
    "flagged_ratio": "Share of them that is flagged.",
    "missing_ratio": "Share of them without a score.",
    "drift_psi": "Population stability index against the training rows.",
    "drift_ks": "Largest difference of distribution functions against the training rows.",
    "gate_level": "0 ok, 1 warn, 2 fail, for each gate of the last run.",
    "stage_seconds": "Seconds of each stage of the last run.",
    "run_seconds": "Seconds of the last run.",
    "attempts": "Runs of the last partition so far.",
    "partitions": "Partitions by how their last run ended.",
    "group_flagged_ratio": "Share of the rows flagged, by group.",
}
_LABEL = {
    "drift_psi": "feature",
    "drift_ks": "feature",
    "gate_level": "gate",
    "stage_seconds": "stage",
    "partitions": "status",
    "group_flagged_ratio": "group",
}
_LASTING = ("last_success_timestamp_seconds", "rows_scored", "flagged_ratio", "missing_ratio")
"""Figures of the last success, which a later failure leaves as they are."""

Figures = dict[str, Any]


def write_metrics(layout: Layout, figures: Figures, folder: str | None) -> None:
    """Write the figures of a run over those of the one before; both files appear whole."""
    known = read_json(layout.runs / JSON) or {}
    merged = {name: known[name] for name in _LASTING if name in known} | figures
    job = str(layout.root)
    content = {JSON: json_bytes(merged), TEXT: prometheus_text(merged, job)}
    for name, text in content.items():
        (layout.runs / name).write(text)
        if folder:  # shared with other jobs
            (Location(folder) / f"{_file_name(layout)}.{name.partition('.')[2]}").write(text)


def _file_name(layout: Layout) -> str:
    """Return a name that no other job has."""
    mark = Entry.of(str(layout.root).encode()).sha256[:8]
    return f"mrot_scale_{layout.root.name}_{mark}"


def prometheus_text(figures: Figures, job: str) -> bytes:
    """Return figures in the format that Prometheus's textfile collector reads."""
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    registry = CollectorRegistry()
    for name, help_text in _HELP.items():
        if name not in figures:
            continue
        label = _LABEL.get(name)
        labels = ["output", *([label] if label else [])]
        gauge = Gauge(f"mrot_{name}", help_text, labels, registry=registry)
        if label is None:
            gauge.labels(job).set(figures[name])
        else:
            for value, figure in figures[name].items():
                gauge.labels(job, value).set(figure)
    return bytes(generate_latest(registry))
