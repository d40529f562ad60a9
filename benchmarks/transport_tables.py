"""Results of the study of transport become Markdown."""

from collections.abc import Sequence

from benchmarks.quality_tables import NOTHING, markdown, number
from benchmarks.transport_runs import ALL, VERDICTS, Record, pair_of, sides_of


def short_table(summary: Sequence[Record]) -> str:
    """Return the pair of each scenario and difficulty, with the verdict."""
    heads = ["scenario", "difficulty", "transport", "k-NN", "difference"]
    heads += ["by the constraint alone", "third side", "verdict"]
    return markdown(heads, [_short_row(record) for record in summary])


def _short_row(record: Record) -> list[str]:
    with_it, without, third = pair_of(record["scenario"])
    means = [f"{record['roc'][side][0]:.1f}" for side in (with_it, without)]
    mean, deviation = record["difference"]
    return [
        record["scenario"],
        f"{record['value']:g}",
        *means,
        f"{mean:+.1f} ± {deviation:.1f}",
        f"{record['constraint_alone'][0]:+.1f}" if "constraint_alone" in record else NOTHING,
        f"{record['roc'][third][0]:.1f} ({third})",
        record["verdict"],
    ]


def scenario_parts(summary: Sequence[Record]) -> list[str]:
    """Return a heading, a sentence and a table for each scenario."""
    parts = []
    for scenario in ALL:
        mine = [record for record in summary if record["scenario"] == scenario.name]
        if mine:
            about = f"{scenario.about[0].upper()}{scenario.about[1:]}. {verdicts(mine)}"
            parts += [f"## {scenario.name}", about, _scenario_table(scenario.parameter, mine)]
    return parts


def verdicts(summary: Sequence[Record]) -> str:
    """Say at which difficulties transport is ahead, behind, or alike."""
    with_it, without, _ = pair_of(summary[0]["scenario"])
    found = []
    for verdict in VERDICTS:
        values = [f"{r['value']:g}" for r in summary if r["verdict"] == verdict]
        if values:
            found.append(f"{verdict} at {', '.join(values)}")
    return f"{with_it} against {without}: {'; '.join(found)}."


def _scenario_table(parameter: str, summary: Sequence[Record]) -> str:
    sides = sides_of(summary[0]["scenario"])
    agrees = "agreement" in summary[0]
    heads = [parameter, *sides, "difference", "hub skew"]
    rows = [
        [
            f"{record['value']:g}",
            *(_with_deviation(record["roc"][side]) for side in sides),
            f"{record['difference'][0]:+.1f} ± {record['difference'][1]:.1f}",
            f"{record['hub_skew']:.1f}",
        ]
        for record in summary
    ]
    table = markdown(heads, rows)
    return f"{table}\n\n{_agreement_table(parameter, summary)}" if agrees else table


def _agreement_table(parameter: str, summary: Sequence[Record]) -> str:
    sides = sides_of(summary[0]["scenario"])
    rows = [
        [f"{record['value']:g}", *(f"{record['agreement'][side]:.3f}" for side in sides)]
        for record in summary
    ]
    head = "Spearman's correlation with transport on the full table:"
    return f"{head}\n\n{markdown([parameter, *sides], rows)}"


def identity_table(gaps: dict[str, float]) -> str:
    """Return how far apart things are that should be equal."""
    heads = ["two ways to the same number", "largest difference, in median squared distances"]
    return markdown(heads, [[name, f"{gap:.1e}"] for name, gap in gaps.items()])


def gain_table(tests: Sequence[Record]) -> str:
    """Return what real sets say about transport, by setting."""
    heads = ["view", "zone mass", "sets", "area", "against"]
    heads += ["mean gain", "sets up : down", "sign test p", "Wilcoxon p"]
    return markdown(heads, [_gain_row(t, m, g) for m in _AREAS for g in _GAINS for t in tests])


_AREAS = ("roc", "pr")
_GAINS = {"gain": "k-NN", "alone": "no limit"}


def _gain_row(test: Record, metric: str, gain: str) -> list[str]:
    found = {key: test[f"{metric}_{gain}_{key}"] for key in _GAIN_KEYS}
    return [
        *(str(test[key]) for key in ("view", "alpha", "n_sets")),
        metric.upper(),
        _GAINS[gain],
        number(found["mean"], signed=True),
        f"{found['sets_up']} : {found['sets_down']}",
        *(_probability(found[key]) for key in ("sign_p", "wilcoxon_p")),
    ]


_GAIN_KEYS = ("mean", "sets_up", "sets_down", "sign_p", "wilcoxon_p")


def set_table(differences: Sequence[Record]) -> str:
    """Return what transport adds on each set."""
    columns = {"transport": "transport", "k-NN": "neighbour", "gain": "gain", "alone": "alone"}
    heads = [f"{metric.upper()} {column}" for metric in _AREAS for column in columns]
    keys = [f"{metric}_{key}" for metric in _AREAS for key in columns.values()]
    rows = [
        [record["dataset"], *(number(record[k], signed=k.endswith(tuple(_GAINS))) for k in keys)]
        for record in differences
    ]
    return markdown(["set", *heads], rows)


def _with_deviation(pair: Sequence[float]) -> str:
    return f"{pair[0]:.1f} ± {pair[1]:.1f}"


def _probability(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"
