"""Figures and verdicts of claims.toml follow from the tables in results/."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from neucrowd_tf.errors import DataError
from neucrowd_tf.evaluation.intervals import Interval
from reproduction import claims, page
from reproduction.claims import Claim, Ours, gain_verdict, value_verdict

CLAIMS = claims.read()
METHODS = Path(__file__).resolve().parents[2] / "docs" / "methods"
HEAD = (
    "dataset,method,metric,mean,sd,runs,gain,gain_low,gain_high,"
    "gain_instances_low,gain_instances_high\n"
)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_figures_and_verdict_follow_from_the_table(claim: Claim) -> None:
    assert claims.recompute(claim) == claim
    if claim.suite:
        assert claim.suite in {suite.name for suite in claims.SUITES}
        assert claim.made_by
    else:  # a reading: its evidence stands in the note
        assert claim.note and claim.verdict == claims.READING


def test_updating_is_idempotent() -> None:
    text = claims.CLAIMS.read_text(encoding="utf-8")
    assert claims.updated(text, CLAIMS) == text


def test_prediction_interval_by_hand() -> None:
    # t(9, .975) = 2.262157; sqrt(1.1) = 1.048809.
    interval = claims.prediction_interval(0.85, 0.01, 10)
    assert interval.high - 0.85 == pytest.approx(2.262157 * 0.01 * 1.048809, rel=1e-5)
    assert claims.prediction_interval(0.85, float("nan"), 1).low != 0.85


@pytest.mark.parametrize(
    ("printed", "interval", "runs", "verdict"),
    [
        (0.87, (0.85, 0.83, 0.87), 10, "within"),
        (0.88, (0.85, 0.83, 0.87), 10, "below"),
        (0.82, (0.85, 0.83, 0.87), 10, "above"),
        (0.82, (0.85, 0.83, 0.87), 9, "above, fewer than ten seeds"),
        (0.88, (0.85, 0.819, 0.881), 10, "cannot be told"),
        (0.88, (0.85, float("nan"), float("nan")), 1, "cannot be told, fewer than ten seeds"),
        (0.8504, (0.85, 0.85, 0.85), 10, "within"),  # runs without randomness
        (0.8506, (0.85, 0.85, 0.85), 10, "below"),
        (None, (0.85, 0.83, 0.87), 10, "measured"),
    ],
)
def test_value_verdicts(
    printed: float | None, interval: tuple[float, ...], runs: int, verdict: str
) -> None:
    assert value_verdict(printed, Interval(*interval), runs) == verdict


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ((0.02, 0.01, 0.03), "holds"),
        ((-0.02, -0.03, -0.01), "reversed"),
        ((0.01, -0.01, 0.03), "not shown"),
        ((0.01, -0.03, 0.05), "cannot be told"),
    ],
)
def test_gain_verdicts(interval: tuple[float, ...], verdict: str) -> None:
    assert gain_verdict(Interval(*interval), 10) == verdict
    assert gain_verdict(Interval(*interval), 5) == verdict + claims.FEWER


def test_gains_are_paired_by_seed_and_the_wider_interval_counts(tmp_path: Path) -> None:
    (tmp_path / "neucrowd_table2.csv").write_text(
        HEAD
        + "hotel,neucrowd,accuracy,0.8,0.1,3,0.2,0.1,0.3,-0.5,0.1\n"
        + "hotel,softprob,accuracy,0.8,0,3,,,,,\nhotel,mv_lr,accuracy,0.8,0,3,,,,,\n"
    )
    claim = Claim("n", "NeuCrowd", "table 2", "c", "hotel", "neucrowd_table2", "neucrowd")
    over = dataclasses.replace(claim, control="mv_lr")
    # Without values by seed the table's own gain counts, and only over the suite's baseline.
    assert claims.recompute(over, tmp_path).ours == Ours(0.2, -0.5, 0.3, 3)
    # The baseline's gain over a row is the opposite of the row's.
    other = dataclasses.replace(claim, row="mv_lr", control="neucrowd")
    assert claims.recompute(other, tmp_path).ours == Ours(-0.2, -0.3, 0.5, 3)
    with pytest.raises(DataError, match="no gain over softprob"):
        claims.recompute(dataclasses.replace(claim, control="softprob"), tmp_path)
    (tmp_path / "neucrowd_table2_seeds.csv").write_text(
        "dataset,method,metric,seed,value\n"
        + "".join(
            f"hotel,{method},accuracy,{seed},{value}\n"
            for method, values in {"neucrowd": (0.9, 0.7, 0.8), "softprob": (0.8, 0.5, 0.5)}.items()
            for seed, value in enumerate(values, 20000)
        )
    )
    ours = claims.recompute(dataclasses.replace(claim, control="softprob"), tmp_path).ours
    # Gains .1, .2, .3: mean .2, sd .1, t(2) = 4.303, half-width .248.
    assert ours is not None and (ours.mean, ours.low, ours.high) == (0.2, -0.04841, 0.44841)
    assert (ours.runs, ours.seeds, ours.worst) == (3, "20000-20002", 0.1)
    value = claims.recompute(claim, tmp_path).ours
    assert value is not None and value.worst == 0.7


def test_tables_that_lack_a_row_or_contradict_their_seeds(tmp_path: Path) -> None:
    claim = Claim("n", "NeuCrowd", "table 2", "c", "hotel", "s", "neucrowd")
    with pytest.raises(DataError, match="has no row"):
        claims.recompute(claim, tmp_path)
    (tmp_path / "s.csv").write_text(HEAD + "hotel,neucrowd,accuracy,0.8,0.1,1,,,,,\n")
    (tmp_path / "s_seeds.csv").write_text(
        "dataset,method,metric,seed,value\nhotel,neucrowd,accuracy,7,0.7\n"
    )
    with pytest.raises(DataError, match="differs from its table"):
        claims.recompute(claim, tmp_path)


@pytest.mark.parametrize("name", ["neucrowd", "rll", "dasc", "crowding", "iced"])
def test_the_page_of_a_method_has_the_claims(name: str) -> None:
    text = (METHODS / f"{name}.md").read_text(encoding="utf-8")
    assert "\n| claim |" in text
    assert text == page.method_page(text, page.PAPERS[name]), "run make results"
