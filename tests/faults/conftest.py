"""Which of the slow tests of this folder run in CI: one of each kind; the others are long."""

import pytest

IN_CI = (
    "test_every_point_is_one_that_the_job_comes_to",
    "test_a_job_killed_at_random_goes_on_to_the_same_bytes",
    "test_what_a_killed_job_had_journalled_is_not_done_again",
    *(
        f"test_a_job_killed_at_a_point_goes_on_to_the_same_bytes[{point}-"
        for point in (
            "append.written",
            "write.renamed",
            "publish.renamed",
            "publish.noted",
            "publish.moved",
            "clear.stages-gone",
        )
    ),
    "test_three_workers_killed_in_a_run_change_nothing",
    "test_a_worker_cut_off_and_back_as_a_zombie_changes_nothing",
    "test_a_run_whose_scheduler_is_killed_ends_at_once",
    "test_a_task_that_fails_wherever_it_runs_is_named[raise]",
    "test_a_task_on_a_slow_worker_is_sent_to_another_and_counts_once",
    "test_a_run_in_which_nothing_finishes_gives_up",
    "test_a_signal_ends_a_run_whose_object_storage_hangs",
    "test_a_signal_ends_a_command_that_goes_on_to_the_same_bytes[score inline-SIGTERM]",
    "test_a_full_disk_ends_a_command_that_goes_on_when_there_is_room[score-16]",
    "test_a_folder_that_cannot_be_written_is_told_before_any_work[score]",
    "test_a_kill_between_data_and_pointer_leaves_the_old_scores[Parquet-publish.noted]",
    "test_a_pointer_moved_by_another_run_is_not_moved_back",
    "test_a_lock_left_by_a_killed_process_of_this_machine_is_taken_over_at_once",
    "test_scoring_makes_requests_that_fail_again[cut]",
    "test_the_command_refuses_hostile_files_in_one_line",
)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let slow tests that are not in the list be long ones."""
    if item.get_closest_marker("slow") and not item.name.startswith(IN_CI):
        item.own_markers = [m for m in item.own_markers if m.name != "slow"]
        item.add_marker(pytest.mark.long)
