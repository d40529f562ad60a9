"""Learn from one Parquet table and score another, top to bottom.

python pipelines/fit_and_score.py TRAINING.parquet TONIGHT.parquet MODEL SCORES
"""

import sys
from pathlib import Path

import pyarrow.dataset as ds

from mrot_scale import fit, ingest, load_config, score, score_rows
from mrot_scale.progress import shown_progress

CONFIG = Path(__file__).parent.parent / "configs" / "nightly.yaml"
ID = "reading"  # column that names each row once; None numbers the rows
NOT_FEATURES = ("planted",)  # columns carried along, not learnt from


def main(training: str, tonight: str, model: str, scores: str) -> None:
    config = load_config(CONFIG)
    known, new = f"{model}.store", f"{scores}.store"
    with shown_progress() as progress:
        # 1. The training table becomes a store.
        ingest(
            training,
            known,
            id=ID,
            exclude=NOT_FEATURES,
            keep=NOT_FEATURES,
            config=config,
            progress=progress,
        )
        # 2. The store becomes a model.
        fitted = fit(known, model, config, progress=progress)
        # 3. Tonight's table becomes a store with the columns and categories the model knows.
        ingest(tonight, new, id=ID, keep=NOT_FEATURES, like=model, config=config, progress=progress)
        # 4. Every row gets its score: Zarr for programs, Parquet for everybody.
        scored = score(
            model,
            new,
            f"{scores}.zarr",
            config,
            parquet=scores,
            keep=NOT_FEATURES,
            progress=progress,
        )

    # 5. A few rows need neither store nor cluster: this is what a service calls.
    few = ds.dataset(tonight).head(3)
    print(f"{fitted.labelled_rows} of {fitted.n_rows} rows labelled: {model}")
    print(f"{scored.n_rows} rows scored, {scored.n_flagged} flagged: {scores}")
    print(f"the first rows by themselves: {score_rows(model, few).tolist()}")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
