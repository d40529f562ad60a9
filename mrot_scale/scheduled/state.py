"""How the last run of each partition ended, and whether it has to run again."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal
from urllib.parse import unquote

from mrot_scale.config.job import Config
from mrot_scale.errors import DamagedDataError
from mrot_scale.profiles import Profile
from mrot_scale.scheduled.inputs import InputFile
from mrot_scale.scheduled.layout import Layout, json_bytes, names_below, read_json
from mrot_scale.scheduled.partitions import Partition
from mrot_scale.storing.manifest import Entry

Status = Literal["published", "empty", "gated", "failed", "running"]


@dataclass(frozen=True)
class PartitionState:
    """The last run of a partition."""

    value: str
    status: Status
    """`gated` was stopped by a gate, `failed` by anything else; `running` may also have died."""

    run_id: str
    attempts: int
    """Runs so far, this one included."""

    level: str = "ok"
    """Worst level among the gates."""

    exit_code: int = 0
    reason: str = ""
    published: dict[str, Any] = field(default_factory=dict)
    """What the last run that published had: inputs, model, settings, rows, flagged."""

    tried: list[dict[str, Any]] = field(default_factory=list)
    """The inputs the last run looked at."""

    @property
    def inputs(self) -> list[InputFile]:
        """The inputs of what is published."""
        return [InputFile.from_json(found) for found in self.published.get("inputs", [])]

    @property
    def was_stopped(self) -> bool:
        """Whether it was stopped by a signal: the same command again goes on."""
        return self.status == "running" or self.exit_code in (130, 143)

    @property
    def inputs_tried(self) -> list[InputFile]:
        return [InputFile.from_json(found) for found in self.tried]


def read_state(layout: Layout, partition: Partition) -> PartitionState | None:
    found = read_json(layout.state(partition))
    if found is None:
        return None
    try:
        return PartitionState(**found)
    except TypeError as error:
        raise DamagedDataError(f"{layout.state(partition)} is damaged ({error}).") from None


def write_state(layout: Layout, partition: Partition, state: PartitionState) -> None:
    layout.state(partition).write(json_bytes(asdict(state)))


def all_states(layout: Layout, key: str) -> dict[str, PartitionState]:
    """Return the state of every partition that ever ran, by value."""
    found = {}
    for name in names_below(layout.runs / "partitions"):
        if name.startswith(f"{key}=") and name.endswith(".json"):
            value = unquote(name.removesuffix(".json").partition("=")[2])
            state = read_state(layout, Partition(key, value))
            if state is not None:
                found[value] = state
    return found


def settings_digest(config: Config) -> str:
    """Return a digest of the settings that decide scores once there is a model."""
    nightly = config.nightly.model_dump(mode="json")
    found = {
        "scoring": config.scoring.model_dump(mode="json"),
        "non_finite": config.non_finite,
        "nightly": {name: nightly[name] for name in ("id", "keep", "by")},
    }
    return Entry.of(json_bytes(found)).sha256


def write_profile(
    layout: Layout, partition: Partition, model: str, inputs: list[InputFile], profile: Profile
) -> None:
    """Keep how a partition's rows are spread, for the next one to be compared with."""
    files = [[f.name, f.size, f.stamp] for f in inputs]
    facts = {"model": model, "inputs": files, "profile": profile.to_json()}
    layout.profile(partition).write(json_bytes(facts))


def read_profile(
    layout: Layout, partition: Partition, model: str, inputs: list[InputFile]
) -> Profile | None:
    """Return what was kept, if it is of the same rows as the same model sees them."""
    found = read_json(layout.profile(partition))
    files = [[f.name, f.size, f.stamp] for f in inputs]
    if found is None or found.get("model") != model or found.get("inputs") != files:
        return None
    return Profile.from_json(found.get("profile"))
