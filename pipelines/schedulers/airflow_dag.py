"""Airflow 3: every night's partition gets its scores.

Put this file into the dags folder. Workers need mrot-scale on PATH and the environment variables
LAKE, SCORES and NIGHTLY_CONFIG.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

TRY_AGAIN = {75, 77, 130, 137, 143}  # temporary, output held by another run, stopped by a signal
NOTHING_TO_DO = 99


class NightlyOperator(BashOperator):
    """A BashOperator that tries again only where that can help: the plain one always does."""

    def execute(self, context: Any) -> None:
        command = ["bash", "-c", self.bash_command]
        code = self.subprocess_hook.run_command(command, env=self.get_env(context)).exit_code
        if code == NOTHING_TO_DO:
            raise AirflowSkipException("The partition has its scores already, or has no rows.")
        if code in TRY_AGAIN or code < 0:  # below zero: killed before it could say anything
            raise AirflowException(f"mrot-scale ended with {code}; the same command goes on.")
        if code:
            raise AirflowFailException(f"mrot-scale ended with {code}; see its message above.")


with DAG(
    "mrot_nightly",
    # Not "@daily": since Airflow 3 its {{ ds }} is the day that begins, not the one that is over.
    schedule=CronDataIntervalTimetable("30 1 * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # `mrot-scale backfill` is for nights missed
    max_active_runs=1,
) as dag:
    NightlyOperator(
        task_id="nightly_scores",
        bash_command='exec mrot-scale nightly "${LAKE:?}" "${SCORES:?}" --date "$DAY"'
        ' -c "${NIGHTLY_CONFIG:?}" --skip-exit-code',
        env={"DAY": "{{ ds }}"},
        append_env=True,
        retries=3,
        retry_delay=timedelta(minutes=10),
        execution_timeout=timedelta(hours=12),
    )
