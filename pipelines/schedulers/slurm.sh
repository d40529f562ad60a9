#!/bin/bash
#SBATCH --job-name=mrot-nightly
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --time=06:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=mrot-nightly-%j.log
#SBATCH --signal=B:TERM@60
#
# Scores one day, yesterday (UTC) unless told:  sbatch slurm.sh [YYYY-MM-DD]
# It needs mrot-scale on PATH and the environment variables LAKE, SCORES and NIGHTLY_CONFIG.
#
# Every night, with `scrontab -e` (or the crontab of a login node):
#   30 1 * * * sbatch /path/to/slurm.sh
set -u

day=${1:-$(date -u -d yesterday +%F)}
most_restarts=3

# Slurm's TERM, a minute before the time is over, goes to this shell alone, and a shell only looks
# at signals while it waits.
mrot-scale nightly "${LAKE:?}" "${SCORES:?}" --date "$day" -c "${NIGHTLY_CONFIG:?}" \
    ${SLURM_CPUS_PER_TASK:+--workers "$SLURM_CPUS_PER_TASK"} &
pid=$!
trap 'kill -TERM "$pid"' TERM INT
wait "$pid"
code=$?
while [ "$code" -gt 128 ] && kill -0 "$pid" 2>/dev/null; do # a signal: only the wait is over
    wait "$pid"
    code=$?
done

# 75 is temporary, 77 means that another run holds the output: the same command again goes on.
case $code in
75 | 77)
    if [ -n "${SLURM_JOB_ID:-}" ] && [ "${SLURM_RESTART_COUNT:-0}" -lt "$most_restarts" ]; then
        scontrol requeue "$SLURM_JOB_ID"
    fi
    ;;
esac
exit "$code"
