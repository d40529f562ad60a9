"""Score a Parquet table with a model, top to bottom.

python pipelines/score.py MODEL TONIGHT.parquet SCORES
"""

import sys
from pathlib import Path

from mrot_scale import ingest, load_config, open_scores, score
from mrot_scale.progress import shown_progress

CONFIG = Path(__file__).parent.parent / "configs" / "nightly.yaml"
ID = "reading"  # column that names each row once; None numbers the rows
KEEP = ("planted",)  # columns to find again beside the scores
SHOWN = 5


def main(model: str, tonight: str, scores: str) -> None:
    config = load_config(CONFIG)
    store = f"{scores}.store"
    with shown_progress() as progress:
        # 1. The table becomes a store with the columns and categories the model knows.
        ingest(tonight, store, id=ID, keep=KEEP, like=model, config=config, progress=progress)
        # 2. Every row gets its score: Zarr for programs, Parquet for everybody.
        scored = score(
            model,
            store,
            f"{scores}.zarr",
            config,
            parquet=scores,
            keep=KEEP,
            progress=progress,
        )

    # 3. What was found.
    print(f"{scored.n_rows} rows scored, {scored.n_flagged} flagged: {scores}")
    found = open_scores(scores).to_table().sort_by([("score", "descending")])
    for row in found.slice(0, SHOWN).to_pylist():
        print(f"  {row}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
