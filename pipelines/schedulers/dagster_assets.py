"""Dagster: a partition per day, and for each its scores.

Start with `dagster dev -f dagster_assets.py`. It needs mrot-scale on PATH and the environment
variables LAKE, SCORES and NIGHTLY_CONFIG.
"""

import json
import os
import subprocess
from typing import Any

from dagster import (
    AssetExecutionContext,
    DailyPartitionsDefinition,
    Definitions,
    Failure,
    MaterializeResult,
    MetadataValue,
    RetryRequested,
    asset,
    build_schedule_from_partitioned_job,
    define_asset_job,
)

TRY_AGAIN = {75, 77, 130, 137, 143}  # temporary, output held by another run, stopped by a signal


def run_nightly(day: str) -> dict[str, Any]:
    """Score one day; return what the command says of it."""
    lake, scores, config = (os.environ[name] for name in ("LAKE", "SCORES", "NIGHTLY_CONFIG"))
    # Its messages go to standard error, and from there to Dagster's log of the run.
    command = ["mrot-scale", "nightly", lake, scores, "--date", day, "-c", config, "--output=json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603
        try:
            document, _ = process.communicate()
        except BaseException:
            process.terminate()  # it stops within seconds, and goes on when run again
            raise
    code = process.returncode
    if code in TRY_AGAIN or code < 0:  # below zero: killed before it could say anything
        # Not the asset's RetryPolicy: that one would also try again after a run is cancelled.
        raise RetryRequested(max_retries=3, seconds_to_wait=600)
    if code:
        raise Failure(f"mrot-scale ended with {code}; see its message.", allow_retries=False)
    found: dict[str, Any] = json.loads(document)
    return found


@asset(
    # A day's partition exists when the day is over, so the schedule below asks for yesterday's.
    partitions_def=DailyPartitionsDefinition(start_date="2026-01-01", timezone="UTC"),
    pool="mrot_nightly",  # give it one slot: a night takes all cores of the machine
)
def nightly_scores(context: AssetExecutionContext) -> MaterializeResult[None]:
    """Anomaly scores of one day's rows."""
    night = run_nightly(context.partition_key)
    for warning in night["warnings"]:
        context.log.warning(warning)
    shown = ("status", "n_rows", "n_flagged", "flagged_share", "model")
    places = ("scores", "report", "manifest")
    return MaterializeResult(
        metadata={name: night[name] for name in shown if night[name] is not None}
        | {name: MetadataValue.path(night[name]) for name in places if night[name] is not None}
    )


every_night = build_schedule_from_partitioned_job(
    define_asset_job("mrot_nightly", [nightly_scores]), hour_of_day=1, minute_of_hour=30
)
defs = Definitions(assets=[nightly_scores], schedules=[every_night])
