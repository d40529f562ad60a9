"""Learn a model from a Parquet table, top to bottom.

python pipelines/fit.py TRAINING.parquet MODEL
"""

import sys
from pathlib import Path

from mrot_scale import fit, ingest, load_config
from mrot_scale.progress import shown_progress

CONFIG = Path(__file__).parent.parent / "configs" / "nightly.yaml"
ID = "reading"  # column that names each row once; None numbers the rows
NOT_FEATURES = ("planted",)  # columns carried along, not learnt from
NOT_LEARNT_FROM = None  # rows to leave out, such as "planted != 'normal'" where labels are known


def main(training: str, model: str) -> None:
    config = load_config(CONFIG)
    store = f"{model}.store"
    with shown_progress() as progress:
        # 1. The table becomes a store: numbers in chunks, identifiers, statistics of each column.
        table = ingest(
            training,
            store,
            id=ID,
            exclude=NOT_FEATURES,
            keep=NOT_FEATURES,
            config=config,
            progress=progress,
        )
        # 2. A sample of its rows is given efforts, and trees learn them.
        fitted = fit(store, model, config, exclude_where=NOT_LEARNT_FROM, progress=progress)

    # 3. How far the model can be trusted.
    print(f"{table.n_rows} rows, {len(table.schema.features)} features: {store}")
    print(f"{fitted.labelled_rows} rows labelled: {model}")
    for name, value in fitted.validation.items():
        print(f"  {name}: {value}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
