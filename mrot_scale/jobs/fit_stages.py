"""The stages of a fit in order, each a list of tasks over views, parts, repeats and blocks.

What tasks do is in `sample_tasks`, `effort_tasks`, `label_tasks`, `learning_tasks` and
`model_tasks`, one short function per kind: read, call a pure function, write. The same pure
functions fit rows in memory (`mrot_scale.fitting`), so both give the same model. What tasks may
assume about each other's output is the records passed along here.
"""

import json
from dataclasses import replace
from typing import Any

from mrot_scale.config.job import Config
from mrot_scale.encoding import rare_levels
from mrot_scale.fitting.setup import plan_fit
from mrot_scale.jobs.labelled import EFFORT_BLOCK_BATCHES, ROUTE_BLOCK_ROWS, label_plan
from mrot_scale.jobs.view_records import ViewRecords
from mrot_scale.model.directory import FORMAT, FORMAT_VERSION
from mrot_scale.model.regressors import n_folds
from mrot_scale.running.commit import Record, task_key
from mrot_scale.running.publish import Folder
from mrot_scale.running.runner import Runner
from mrot_scale.running.tasks import Task, records_json
from mrot_scale.storing.store import FeatureStore

_JOBS = "mrot_scale.jobs"


class FitStages:
    """The stages of one fit."""

    def __init__(
        self, runner: Runner, store: FeatureStore, config: Config, exclude: str | None
    ) -> None:
        config = config.for_columns(len(store.schema.features))
        self._runner, self._store, self._config = runner, store, config
        self._exclude = exclude
        self._common = {"method": config.method.model_dump_json()}
        self._views = range(len(config.views))
        self._two_passes = config.two_passes

    def run(self) -> Folder:
        """Run all stages and return the folder that is the model."""
        parts = self._sample()
        first = parts[0].to_json()
        learnt = self._learn_views(first)
        zones = self._neighbours(parts, learnt)
        efforts = self._efforts(parts, learnt, zones)
        trust = self._trust(first, efforts)
        anchors = self._anchors(first, learnt, zones, trust)
        routes = self._routes(parts, learnt, anchors)
        calibrated = self._calibrate(first, learnt, anchors, efforts, routes)
        alone = ViewRecords(learnt, anchors, calibrated)
        fitted = self._company(first, alone).to_json()
        labels = self._label(parts, routes if self._two_passes else efforts, fitted)
        extra = self._imagine(first, fitted)
        label = labels[0].to_json()
        kind = self._regressor(first, label)
        trained, folds = self._train("train", kind, parts, labels, extra)
        judged = self._judge(first, label, folds, kind)
        if judged["hybrid"]:
            extra = [*extra, self._mix(first, label, fitted)]
            trained, folds = self._train("hybrid", "hybrid", parts, labels, extra, trained)
        assembled = self._assemble(first, label, fitted, folds, trained)
        validated = self._validate(first, assembled, calibrated, zones, judged)
        return _model_folder(assembled, validated)

    def _task(self, function: str, key: str, **arguments: Any) -> Task:
        """Return a task of a function, as `module:function` below `mrot_scale.jobs`."""
        return Task(key, f"{_JOBS}.{function}", self._common | arguments)

    def _sample(self) -> list[Record]:
        """Draw the labelled rows: one pass over the store, then each part put together."""
        address = self._store.location.address
        coverage = self._config.coverage
        drawn = self._runner.stage(
            "sample",
            [
                self._task(
                    "sample_tasks:draw_rows",
                    task_key("sample", chunk),
                    store=address,
                    chunk=chunk,
                    coverage=coverage,
                    exclude=self._exclude,
                )
                for chunk in self._store.chunks
            ],
        )
        n_parts = label_plan(self._store, self._config, coverage).n_parts
        parts: list[Record] = []
        for part in range(n_parts):
            task = self._task(
                "sample_tasks:gather_rows",
                task_key("gather", part),
                pieces=[_piece(record, part) for record in drawn],
                part=part,
                store=address,
                first=parts[0].to_json() if parts else None,
            )
            parts.append(self._runner.one(task))
        return parts

    def _learn_views(self, first: Any) -> list[Any]:
        tasks = [
            self._task("effort_tasks:learn_view", task_key("views", v), part=first, view=v)
            for v in self._views
        ]
        return records_json(self._runner.stage("views", tasks))

    def _met(self, parts: list[Record]) -> list[Record]:
        """Return the parts whose rows meet in batches: a first pass is over the sample alone."""
        return parts[:1] if self._two_passes else parts

    def _neighbours(self, parts: list[Record], learnt: list[Any]) -> dict[int, list[Any]] | None:
        """Measure zones by reference, where they are: for each view, for each part."""
        setup = plan_fit(parts[0].facts["rows"], self._config.method, 1, None)
        if not setup.measures_zones:
            return None
        views, met = self._config.batch_views, self._met(parts)
        tasks = [
            self._task(
                "effort_tasks:measure_zones",
                task_key("neighbours", v, p),
                part=part.to_json(),
                first=parts[0].to_json(),
                view=v,
                learnt=learnt[v],
            )
            for v in views
            for p, part in enumerate(met)
        ]
        found = records_json(self._runner.stage("neighbours", tasks))
        return {v: found[i * len(met) : (i + 1) * len(met)] for i, v in enumerate(views)}

    def _efforts(
        self, parts: list[Record], learnt: list[Any], zones: dict[int, list[Any]] | None
    ) -> list[list[list[Any]]]:
        """Solve every batch: for each view and part, the blocks of all repeats in order."""
        tasks, places = [], []
        for v in self._config.batch_views:
            for p, part in enumerate(self._met(parts)):
                plan = plan_fit(part.facts["rows"], self._config.method, 1, None).plan
                blocks = -(-plan.batches_per_repeat // EFFORT_BLOCK_BATCHES)
                for repeat in range(plan.repeats):
                    for block in range(blocks):
                        places.append((v, p))
                        tasks.append(
                            self._task(
                                "effort_tasks:solve_efforts",
                                task_key("efforts", v, p, repeat, block),
                                part=part.to_json(),
                                view=v,
                                learnt=learnt[v],
                                zones=None if zones is None else zones[v][p],
                                repeat=repeat,
                                block=block,
                            )
                        )
        found: list[list[list[Any]]] = [[[] for _ in parts] for _ in self._views]
        for (v, p), record in zip(places, self._runner.stage("efforts", tasks), strict=True):
            found[v][p].append(record.to_json())
        return found

    def _trust(self, first: Any, efforts: list[list[list[Any]]]) -> Any | None:
        """Order the rows by trust, where there was a first pass."""
        if not self._two_passes:
            return None
        met = [efforts[v][0] for v in self._config.batch_views]
        task = self._task("effort_tasks:trust_rows", task_key("trust", 0), part=first, efforts=met)
        return self._runner.one(task).to_json()

    def _anchors(
        self, first: Any, learnt: list[Any], zones: dict[int, list[Any]] | None, trust: Any | None
    ) -> list[Any]:
        # Anchors of a second pass make their zones among themselves, as scoring does.
        own = zones if not self._two_passes else None
        tasks = [
            self._task(
                "effort_tasks:solve_anchors",
                task_key("anchors", v),
                part=first,
                view=v,
                learnt=learnt[v],
                zones=None if own is None else own[v][0],
                trust=trust,
            )
            for v in self._views
        ]
        return records_json(self._runner.stage("anchors", tasks))

    def _routes(
        self, parts: list[Record], learnt: list[Any], anchors: list[Any]
    ) -> list[list[list[Any]]]:
        """Send rows to the anchors: for each view, for each part, its blocks in order."""
        tasks, places = [], []
        for v in self._views:
            for p, part in enumerate(parts if self._two_passes else parts[:1]):
                for block in range(-(-part.facts["rows"] // ROUTE_BLOCK_ROWS)):
                    places.append((v, p))
                    tasks.append(
                        self._task(
                            "effort_tasks:route_rows",
                            task_key("routes", v, p, block),
                            part=part.to_json(),
                            view=v,
                            learnt=learnt[v],
                            anchors=anchors[v],
                            block=block,
                        )
                    )
        found: list[list[list[Any]]] = [[[] for _ in parts] for _ in self._views]
        for (v, p), record in zip(places, self._runner.stage("routes", tasks), strict=True):
            found[v][p].append(record.to_json())
        return found

    def _calibrate(
        self,
        first: Any,
        learnt: list[Any],
        anchors: list[Any],
        efforts: list[list[list[Any]]],
        routes: list[list[list[Any]]],
    ) -> list[Any]:
        """Find how rare each effort of the sample is."""
        tasks = [
            self._task(
                "effort_tasks:calibrate",
                task_key("calibrate", v),
                part=first,
                view=v,
                learnt=learnt[v],
                anchors=anchors[v],
                efforts=None if self._two_passes else efforts[v][0],
                routes=routes[v][0],
            )
            for v in self._views
        ]
        return records_json(self._runner.stage("calibrate", tasks))

    def _company(self, first: Any, alone: ViewRecords) -> ViewRecords:
        """Share rarities among neighbours, where rows keep company."""
        if self._config.company_view is None:
            return alone
        task = self._task(
            "effort_tasks:share_company", task_key("company", 0), part=first, fitted=alone.to_json()
        )
        return replace(alone, company=self._runner.one(task).to_json())

    def _label(
        self, parts: list[Record], measured: list[list[list[Any]]], fitted: Any
    ) -> list[Record]:
        tasks = [
            self._task(
                "label_tasks:label_rows",
                task_key("label", p),
                part=part.to_json(),
                is_sample=p == 0,
                measured=[measured[v][p] for v in self._views] if p else [],
                fitted=fitted,
            )
            for p, part in enumerate(parts)
        ]
        return self._runner.stage("label", tasks)

    def _imagine(self, first: Any, fitted: Any) -> list[Any]:
        """Make rows with rare categories, where there are categories."""
        if not rare_levels(self._store.schema):
            return []
        task = self._task(
            "label_tasks:imagine_categories", task_key("imagine", 0), part=first, fitted=fitted
        )
        return [self._runner.one(task).to_json()]

    def _mix(self, first: Any, label: Any, fitted: Any) -> Any:
        """Make rows of two others."""
        task = self._task(
            "label_tasks:mix_rows", task_key("mix", 0), part=first, labels=label, fitted=fitted
        )
        return self._runner.one(task).to_json()

    def _train(
        self,
        stage: str,
        kind: str,
        parts: list[Record],
        labels: list[Record],
        extra: list[Any],
        plain: Any | None = None,
    ) -> tuple[Any, list[Any]]:
        """Train the score model, and one per fold to see what it says of rows it has not seen."""
        first, label = parts[0].to_json(), labels[0].to_json()
        tasks = [
            self._task(
                "learning_tasks:train_model",
                task_key(stage, 0),
                parts=records_json(parts),
                labels=records_json(labels),
                extra=extra,
                kind=kind,
                plain=plain,
            )
        ]
        tasks += [
            self._task(
                "learning_tasks:train_fold",
                task_key(stage, 1 + fold),
                part=first,
                labels=label,
                extra=extra,
                kind=kind,
                fold=fold,
            )
            for fold in range(n_folds(first["facts"]["rows"], self._config.folds))
        ]
        trained, *folds = records_json(self._runner.stage(stage, tasks))
        return trained, folds

    def _judge(self, first: Any, label: Any, folds: list[Any], kind: str) -> dict[str, Any]:
        task = self._task(
            "learning_tasks:judge_trees",
            task_key("judge", 0),
            part=first,
            labels=label,
            folds=folds,
            kind=kind,
        )
        return dict(self._runner.one(task).facts)

    def _regressor(self, first: Any, label: Any) -> str:
        if self._config.regressor != "auto":
            return self._config.regressor
        task = self._task(
            "learning_tasks:choose_regressor", task_key("choose", 0), part=first, labels=label
        )
        return str(self._runner.one(task).facts["kind"])

    def _assemble(
        self, first: Any, label: Any, fitted: Any, folds: list[Any], trained: Any
    ) -> Record:
        task = self._task(
            "model_tasks:assemble_model",
            task_key("assemble", 0),
            part=first,
            labels=label,
            fitted=fitted,
            folds=folds,
            trained=trained,
            settings=threshold_settings(self._config),
        )
        return self._runner.one(task)

    def _validate(
        self,
        first: Any,
        assembled: Record,
        views: list[Any],
        zones: dict[int, list[Any]] | None,
        judged: dict[str, Any],
    ) -> Record:
        recall = [z["facts"]["recall"] for view in (zones or {}).values() for z in view]
        stability = {f"view{i}": view["facts"]["stability"] for i, view in enumerate(views)}
        facts = {
            "index_recall": min(recall, default=1.0),
            "effort_stability": stability,
            "plain_trees_loss": judged["loss"],
            "model_kind": "hybrid" if judged["hybrid"] else "plain",
        }
        task = Task(
            task_key("validate", 0),
            f"{_JOBS}.model_tasks:validate_model",
            {"part": first, "assembled": assembled.to_json(), "facts": facts},
        )
        return self._runner.one(task)


def _piece(record: Record, part: int) -> Any:
    """Return what gathering one part needs to know of a chunk: not the other parts."""
    wanted = (f"part{part}", "held", "counts") if part == 0 else (f"part{part}",)
    kept = {name: record.objects[name] for name in wanted}
    return Record(record.key, kept, record.facts).to_json()


def _model_folder(assembled: Record, validated: Record) -> Folder:
    folder = Folder(FORMAT, FORMAT_VERSION, objects=dict(assembled.objects))
    text = json.dumps(validated.facts, indent=1, sort_keys=True, allow_nan=False) + "\n"
    folder.small["validation.json"] = text.encode()
    return folder


def threshold_settings(config: Config) -> dict[str, Any]:
    """Return what a model keeps of the settings for scoring."""
    return {"method": config.scoring.method, "contamination": config.scoring.contamination}
