"""Fit a Parquet table and score another with it, top to bottom.

python pipelines/fit_and_score.py TRAINING.parquet TONIGHT.parquet MODEL_DIR SCORES.parquet
"""

import sys
from pathlib import Path

import pyarrow.parquet as pq

from mrot_scale import MROT, load_config

CONFIG = Path(__file__).parent.parent / "configs" / "default.yaml"
LEFT_OUT = ("reading", "planted")  # columns that identify or label rows
FLAGGED_SHARE = 0.01


def main(training: str, tonight: str, model: str, scores: str) -> None:
    known = pq.read_table(training)
    new = pq.read_table(tonight)
    features = [name for name in known.column_names if name not in LEFT_OUT]

    detector = MROT(config=load_config(CONFIG), contamination=FLAGGED_SHARE, n_jobs=-1)
    detector.fit(known.select(features))
    detector.save(model)

    score = detector.anomaly_score(new.select(features))
    flagged = score > -detector.offset_
    result = new.append_column("score", [score]).append_column("flagged", [flagged])
    pq.write_table(result, scores)
    print(f"{len(score)} rows scored, {int(flagged.sum())} flagged: {scores}")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
