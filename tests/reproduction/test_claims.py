"""Figures and verdicts of claims.toml follow from the tables in results/."""

from __future__ import annotations

import csv
import dataclasses
import math
import re
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.intervals import Interval
from reproduction import claim as claim_file
from reproduction import claims, forest, page
from reproduction.catalogue import SUITES
from reproduction.claim import RESULTS, Claim, Ours, figures, read
from reproduction.printed import Figure
from reproduction.verdicts import (
    BOUNDS,
    all_verdict,
    gain_verdict,
    kind_of,
    most_verdict,
    prediction_interval,
    value_verdict,
)
from tests.cases import raises

CLAIMS = read()
DOCS = Path(__file__).resolve().parents[2] / "docs"
HEAD = (
    "dataset,method,metric,mean,sd,runs,gain,gain_low,gain_high,"
    "gain_instances_low,gain_instances_high\n"
)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_figures_and_verdict_follow_from_the_table(claim: Claim) -> None:
    assert claims.recompute(claim) == claim
    assert bool(claim.suite) == bool(claim.made_by)
    if claim.verdict == claim_file.READING:  # its evidence stands in the note
        assert claim.note and claim.choice


@pytest.mark.parametrize("claim", [x for x in CLAIMS if x.suite], ids=lambda claim: claim.name)
def test_command_names_rows_of_its_suites(claim: Claim) -> None:
    suites = {suite.name: suite for suite in SUITES}
    parts = re.findall(r"--suite=(\w+) --rows='([^']+)'", claim.made_by)
    assert {name for name, _ in parts} >= {claim.control_suite} - {""} and parts
    for name, rows in parts:
        assert all(suites[name].with_rows([row]).cases for row in rows.split(","))


def test_names_in_the_picture_are_whole_and_fit() -> None:
    for claim in CLAIMS:
        name = forest._name(claim)
        assert max(map(len, name.splitlines())) <= 72
        text = re.sub(", published (equations|rules)", " (published)", claim.claim)
        assert name.split() == f"{claim.paper}: {text}".split()


def test_updating_is_idempotent() -> None:
    text = claim_file.CLAIMS.read_text(encoding="utf-8")
    assert claim_file.updated(text, CLAIMS) == text


def test_prediction_interval_by_hand() -> None:
    # t(9, .975) = 2.262157; sqrt(1.1) = 1.048809: half .023726. On the log odds of .85 (1.734601)
    # it is divided by .85 * .15, on the logarithm by .85, on Fisher's scale by 1 - .85**2.
    one = prediction_interval(0.85, 0.01, 10)
    assert one.low == pytest.approx(expit(1.734601 - 0.023726 / 0.1275), rel=1e-5)
    count = prediction_interval(0.85, 0.01, 10, kind=kind_of("log_loss"))
    assert math.log(count.high / 0.85) == pytest.approx(0.023726 / 0.85, rel=1e-4)
    correlation = prediction_interval(0.85, 0.01, 10, kind=kind_of("hardness_correlation"))
    step = math.atanh(0.85) - math.atanh(correlation.low)
    assert step == pytest.approx(0.023726 / 0.2775, rel=1e-4)
    # Five runs of theirs with a deviation of .02: sqrt(.01**2/10 + .02**2/5) = .009487, Welch's
    # 4.8 degrees of freedom.
    five = prediction_interval(0.85, 0.01, 10, Figure(0.8, 0.02, 5))
    freedom = 9e-5**2 / (1e-5**2 / 9 + 8e-5**2 / 4)
    half = stats.t.ppf(0.975, freedom) * 9e-5**0.5
    assert five.high == pytest.approx(expit(1.734601 + half / 0.1275), rel=1e-5)
    assert prediction_interval(0.85, float("nan"), 1).low != 0.85
    assert prediction_interval(0.99, 0.05, 10).high < 1


def test_stored_intervals_keep_within_their_metrics_bounds() -> None:
    for path in sorted(RESULTS.glob("*.csv")):
        table = pd.read_csv(path)
        if "predicted_low" in table:
            low, high = zip(*map(BOUNDS.get, map(kind_of, table["metric"])), strict=True)
            ends = table["mean"].fillna(0), table["predicted_low"], table["predicted_high"]
            assert all(
                (end.fillna(0) >= low).all() and (end.fillna(0) <= high).all() for end in ends
            )


# Published value, ours, the prediction interval, runs, verdict.
VALUES = """
0.87   0.85 0.83 0.87   10 within
0.88   0.85 0.83 0.87    5 below
0.82   0.85 0.83 0.87    9 above
0.82   0.85 0.83 0.87    4 too few runs
0.88   0.85 0.819 0.881 10 too wide
0.88   0.85 nan nan      1 too few runs
0.8504 0.85 0.85 0.85   10 within
0.8506 0.85 0.85 0.85   10 below
"""
# Gain, its interval, margin, verdict. All of an interval has to be on one side of a margin.
GAINS = """
 0.02    0.01    0.03   0    ahead
-0.02   -0.03   -0.01   0    behind
 0.009  -0.002   0.02   0    undecided
 0.009  -0.0     0.018  0    undecided
-0.0052 -0.0102 -0.0002 0.01 undecided
-0.005  -0.0098 -0.0002 0.01 ahead
-0.02   -0.03   -0.011  0.01 behind
"""


@pytest.mark.parametrize("line", VALUES.strip().splitlines())
def test_value_verdicts(line: str) -> None:
    *numbers, runs, verdict = line.split(maxsplit=5)
    published, *interval = map(float, numbers)
    assert value_verdict(published, Interval(*interval), int(runs)) == verdict
    assert value_verdict(None, Interval(*interval), 10) == "measured"


@pytest.mark.parametrize("line", GAINS.strip().splitlines())
def test_gain_verdicts(line: str) -> None:
    *numbers, verdict = line.split()
    *interval, margin = map(float, numbers)
    assert gain_verdict(Interval(*interval), 5, margin) == verdict
    assert gain_verdict(Interval(*interval), 4, margin) == "too few runs"


def test_verdicts_on_all_rivals_and_on_most_data_sets() -> None:
    assert all_verdict(["ahead", "ahead"]) == most_verdict(["ahead", "ahead", "behind"]) == "ahead"
    assert (
        all_verdict(["ahead", "undecided"]) == most_verdict(["ahead", "undecided"]) == "undecided"
    )
    assert all_verdict(["ahead", "undecided", "behind"]) == "behind"
    assert most_verdict(["behind", "behind", "ahead"]) == "behind"


def test_a_claim_about_most_data_sets_is_judged_over_them() -> None:
    (claim,) = (claim for claim in CLAIMS if claim.data_sets)
    members = {member.name: member for member in CLAIMS}
    counts = [members[name].verdict == "ahead" for name in claim.data_sets]
    assert claim.verdict.endswith(f"on {sum(counts)} of {len(counts)} data sets")
    assert claim.comparability == "" and figures(claim)[1].startswith("+")


def test_every_measured_claim_says_how_its_inputs_compare() -> None:
    for claim in CLAIMS:
        if claim.suite:
            assert claim.comparability, claim.name
        if not claim.controls and claim.ours and not claim.choice and claim.comparability != "same":
            assert claim.data_sets or claim.verdict in ("not compared", "did not train")


def test_gains_are_paired_by_seed(tmp_path: Path) -> None:
    (tmp_path / "neucrowd_table2.csv").write_text(
        HEAD
        + "hotel,neucrowd,accuracy,0.8,0.1,3,0.0,-0.1,0.1,-0.5,0.1\n"
        + "hotel,softprob,accuracy,0.6,0,3,,,,,\nhotel,mv_lr,accuracy,0.8,0,3,,,,,\n"
    )
    claim = Claim(
        *("n", "NeuCrowd", "table 2", "c"), data="hotel", suite="neucrowd_table2", row="neucrowd"
    )

    def recomputed(**changes) -> Claim:
        return claims.recompute(dataclasses.replace(claim, **changes), tmp_path)

    # Without values by seed the gain over the baseline is the table's.
    assert recomputed(control="mv_lr").ours == Ours(0.0, -0.5, 0.1, 3)
    # Any other gain is that of unpaired runs, with Welch's interval.
    high = round(0.2 + stats.t.ppf(0.975, 2) * 0.1 / 3**0.5, 5)
    lead = Ours(0.2, round(0.4 - high, 5), high, 3, published=0.021, seeds_only=True)
    assert recomputed(control="softprob").ours == lead
    raises(DataError, "has no row with runs of hotel/absent", recomputed, control="absent")
    values = {"neucrowd": "0.9 0.7 0.8", "softprob": "0.8 0.5 0.5", "mv_lr": "0.8 0.8 0.8"}
    rows = [
        f"hotel,{method},accuracy,{seed},{value}"
        for method, row in values.items()
        for seed, value in enumerate(row.split(), 20000)
    ]
    seeds = tmp_path / "neucrowd_table2_seeds.csv"
    seeds.write_text("\n".join(["dataset,method,metric,seed,value", *rows]) + "\n")
    ours = recomputed(control="softprob").ours
    # Gains .1, .2, .3: mean .2, sd .1, t(2) = 4.303, half-width .248; hotel's test reviews are the
    # same for every seed.
    paired = Ours(0.2, -0.04841, 0.44841, 3, "20000-20002", published=0.021, seeds_only=True)
    assert ours == paired
    # Over the suite's baseline the table has an interval over seeds and instances.
    table = Ours(0.0, -0.5, 0.1, 3, "20000-20002", published=None)
    assert recomputed(control="mv_lr").ours == table
    # Of several controls the smallest gain is shown, and all are counted. The published gain is the
    # paper's lead over the best of the rivals that it has.
    both = recomputed(control=["softprob", "mv_lr"])
    assert both.verdict == "too few runs, 0 of 2"
    assert (both.ours.over, both.ours.leads, both.ours.published) == ("mv_lr", "0 of 2", 0.021)
    # With a control for each row gains are averaged.
    zipped = recomputed(row=["neucrowd", "mv_lr"], control=["softprob", "mv_lr"]).ours
    less = recomputed(control="softprob", less=True).ours
    assert zipped.mean == 0.1 and less.mean == -0.2


def test_the_published_gain_is_the_papers_smallest_lead() -> None:
    claims_by_name = {claim.name: claim for claim in CLAIMS}
    # Hotel: 0.871 here; Triple, 0.864, is the paper's best rival, SoftProb (0.850) decides here.
    ours = claims_by_name["neucrowd_best_hotel"].ours
    assert (ours.over, ours.published) == ("softprob", 0.007)
    # Two forms of one method share a value, so the paper has no gain of one over the other.
    assert claims_by_name["iced_ours_leads_printed"].ours.published is None


def test_counts_of_the_main_page_follow_from_the_claims(repository: Path) -> None:
    text = " ".join((repository / "RESULTS.md").read_text(encoding="utf-8").split())
    gains = [x for x in CLAIMS if x.name.startswith("dasc_gain_") and x.controls]
    ahead = sum(x.verdict == "ahead" for x in gains)
    assert f"its base layer in {ahead} of {len(gains)} comparisons" in text
    assert "its lead on hotel is 1 of 140 reviews" in text  # 0.871 - 0.864, of 140


def test_main_comparisons_are_counted_by_settings() -> None:
    ours = Ours(0.02, 0.01, 0.03, 10)
    claim = Claim("n", "CrowdInG", "w", "c", data="music", row="a", control="b", ours=ours)
    near = dataclasses.replace(claim, settings="similar", verdict="undecided")
    few = dataclasses.replace(claim, verdict="too few runs")
    (line,) = page.answer(
        dataclasses.replace(x, headline=True)
        for x in (near, few, dataclasses.replace(claim, verdict="ahead, 1 of 1"))
    )
    assert "similar settings 1 undecided; our settings 1 ahead, 1 too few runs" in line


def test_tables_that_lack_a_row_or_contradict_their_seeds(tmp_path: Path) -> None:
    claim = Claim("n", "NeuCrowd", "table 2", "c", data="hotel", suite="s", row="neucrowd")
    raises(DataError, "has no row", claims.recompute, claim, tmp_path)
    (tmp_path / "s.csv").write_text(HEAD + "hotel,neucrowd,accuracy,0.8,0.1,1,,,,,\n")
    (tmp_path / "s_seeds.csv").write_text(
        "dataset,method,metric,seed,value\nhotel,neucrowd,accuracy,7,0.7\n"
    )
    raises(DataError, "differs from its table", claims.recompute, claim, tmp_path)
    twice = "dataset,method,metric,seed,fold,value\n" + "hotel,neucrowd,accuracy,7,{},0.8\n" * 2
    (tmp_path / "s_seeds.csv").write_text(twice.format(0, 1))  # two folds are not two runs
    (tmp_path / "s.csv").write_text(HEAD + "hotel,neucrowd,accuracy,0.8,0.1,2,,,,,\n")
    raises(
        DataError, "has lines of hotel/neucrowd, accuracy twice", claims.recompute, claim, tmp_path
    )


def test_runs_of_auto_are_paired_by_seed_with_a_suites(tmp_path: Path) -> None:
    claim = Claim("n", "DASC", "w", "c", choice=True, data="music", suite="auto_accuracy")
    claim = dataclasses.replace(claim, row="auto", control="dasc", control_suite="s", command="x")
    lines = ["dataset,method,seed,validation,target,accuracy"]
    for seed in range(5):
        lines += [f"music,auto,{seed},0,as_trained,0.7{seed}", f"music,auto,{seed},0,balanced,0.9"]
        lines += [f"music,auto,{seed},1,as_trained,0.99"]  # with validation items
    (tmp_path / "auto_accuracy.csv").write_text("\n".join(lines))
    (tmp_path / "s.csv").write_text(HEAD + "music,dasc,accuracy,0.64,0.02,5,,,,,\n")
    values = "".join(f"music,dasc,accuracy,{seed},0.6{2 + seed}\n" for seed in range(5))
    (tmp_path / "s_seeds.csv").write_text("dataset,method,metric,seed,value\n" + values)
    result = claims.recompute(claim, tmp_path)
    # Each seed gains .08, so the interval has no width.
    assert result.verdict == "ahead" and result.ours == Ours(
        0.08, 0.08, 0.08, 5, "0-4", seeds_only=True
    )
    assert claims.lines_needed(claim) == []
    balanced = claims.recompute(dataclasses.replace(claim, row="balanced/auto"), tmp_path)
    assert balanced.ours.mean == 0.26
    with pytest.raises(DataError, match="has no runs of music/iced"):
        claims.recompute(dataclasses.replace(claim, row="iced"), tmp_path)


def test_figures_are_compared_by_their_lines(tmp_path: Path) -> None:
    claim = Claim(
        "n", "DASC", "figure 4", "c", data="d", suite="f", row="dasc", control="ce", panel="p"
    )
    (tmp_path / "f.csv").write_text(
        "panel,line,round,mean,sd,runs\np,dasc,1,0.5,0,10\np,dasc,2,0.9,0.2,10\np,ce,1,0.4,0,10\n"
        "p,ce,2,0.8,0.2,10\n"
    )
    result = claims.recompute(dataclasses.replace(claim, command="x"), tmp_path)
    assert result.ours.mean == 0.1 and result.verdict == "undecided"
    first = claims.recompute(dataclasses.replace(claim, command="x", x=1.0), tmp_path)
    assert first.verdict == "ahead"
    with pytest.raises(DataError, match="has no line 'dasc' of 'p' at 3"):
        claims.recompute(dataclasses.replace(claim, x=3.0), tmp_path)


def test_gains_in_accuracy_on_fixed_test_sets_are_over_instances_too() -> None:
    measured = [claim for claim in CLAIMS if claim.ours is not None]
    needed = [claim for claim in measured if claims.lines_needed(claim)]
    assert len(needed) > 80 and not [x.name for x in needed if x.ours and x.ours.seeds_only]
    # Figures are read for what no row has: losses, class shares, training instances, each epoch.
    figures_read = {claim.suite for claim in measured if claim.panel and claim.data in claims.FIXED}
    assert figures_read == {
        *("neucrowd_fig2_curves", "dasc_fig4_imbalance", "dasc_fig5_selections"),
        *("dasc_fig7_imbalance", "crowding_fig2_entropy", "crowding_fig2_steps"),
    }


def test_main_claims_fit_a_page() -> None:
    papers = Counter(claim.paper for claim in CLAIMS if claim.headline)
    assert set(papers) == set(list(page.PAPERS.values())[:5]) and max(papers.values()) <= 11
    assert not any(claim.headline and claim.choice for claim in CLAIMS)
    words = {claim.verdict.partition(",")[0] for claim in CLAIMS if not claim.choice}
    absent = {"private data", "data not available", "not measured"}
    none = {"not compared", "did not train", "too few runs"}
    assert words <= {"ahead", "undecided", "behind", "within", "above", "below"} | absent | none


def test_pages_are_current(repository: Path) -> None:
    assert (repository / "RESULTS.md").read_text(encoding="utf-8") == page.page(RESULTS)
    for path in (repository / "README.md", repository / "docs" / page.MAPS):
        text = path.read_text(encoding="utf-8")
        assert page.filled(text, path.stem) == text, "run make results"
    readme = (repository / "README.md").read_text(encoding="utf-8")
    assert "\n".join(page.minute(read())) in readme
    stored = (repository / "results" / page.CLAIMS).read_text(encoding="utf-8")
    assert stored == page.claims_csv(read()), "run make results"


@pytest.mark.parametrize("name", ["neucrowd", "rll", "dasc", "crowding", "iced", "crowd_layers"])
def test_the_page_of_a_method_has_its_gains(name: str) -> None:
    folder = DOCS / ("methods" if name == "crowd_layers" else "papers")
    text = (folder / f"{name}.md").read_text(encoding="utf-8")
    assert "<!-- gains -->" in text and "<!-- no gains -->" in text
    assert text == page.filled(text, name), "run make results"
    assert any(claim.advice == name for claim in CLAIMS)


def test_advice_follows_from_the_verdict() -> None:
    ours = Ours(0.02, 0.01, 0.03, 10, over="b")
    claim = Claim("n", "DASC", "w", "c", data="d", suite="s", row="x/a", control=["b"], ours=ours)
    yes = dataclasses.replace(claim, verdict="ahead")
    shown = "+2.0 [+1.0, +3.0] points (10)"
    assert page.gains_of([yes], True)[-1] == f"| `a` | `b` | `d`, x | {shown} |"
    assert page.gains_of([yes], False) == ["Each of the compared pairs shows a gain."]
    # Fewer than five runs have no verdict, and are no advice.
    few = dataclasses.replace(claim, verdict="too few runs")
    assert page.gains_of([few], False) == page.gains_of([yes], False)
    no = dataclasses.replace(claim, verdict="undecided")
    assert page.gains_of([no], False)[0].startswith("| instead of | use |")
    assert page.gains_of([no], True) == ["None of the compared pairs shows a gain."]


def test_a_share_of_a_figure_is_in_points_and_a_ratio_is_not() -> None:
    ours = Ours(0.02, runs=3)
    share = Claim(
        "n", "DASC", "w", "c", suite="f_accuracy", panel="p", control="ce", less=True, ours=ours
    )
    assert figures(share)[1] == "+2.0 points"
    assert figures(dataclasses.replace(share, suite="f_imbalance"))[1] == "+0.020"


def test_main_page_is_short_and_types_no_figure(repository: Path) -> None:
    assert len((repository / "RESULTS.md").read_text(encoding="utf-8").split()) <= 900
    template = page.TEMPLATE.read_text(encoding="utf-8")
    assert not re.search(r"[-+]\d+\.\d", template), "write {{name}} for a stored figure"
    text = page.page(RESULTS)
    with (RESULTS / "auto.csv").open(encoding="utf-8") as lines:
        gains = {row["auto minus it"] for row in csv.DictReader(lines)}
    for shown in ("+0.061 [+0.048, +0.074] (10)", "-0.019 [-0.030, -0.007] (10)"):
        assert shown in gains
    assert "+6.1 [+4.8, +7.4]" in text and "-1.9 [-3.0, -0.7]" in text
