"""NeuCrowd's and RLL's tables and figures."""

from __future__ import annotations

from reproduction import curves
from reproduction.suite import Suite, case

METRIC_LEARNING = "contrastive triplet triplet_semi center lifted"
_NAMES = METRIC_LEARNING.split()
_WITH_DS = " ".join(f"{name}_ds" for name in _NAMES)
_WITH_BOTH = " ".join(f"{name}_{by}" for name in (*_NAMES, "relation_net") for by in ("ds", "glad"))
_NEUCROWD = "neucrowd_no_sa_ra_sn neucrowd_no_sa_ra neucrowd_no_sa neucrowd"
_RLL = "rll rll_mle rll_bayesian"
_OWN_NAMES = (
    "The paper's datasets are private; the same methods on hotel, syn1 and syn2 stand under those"
    " names."
)
_ALL, _SYNTHETIC = "hotel syn1 syn2", "syn1 syn2"
_NEUCROWD_METRICS, _RLL_METRICS = ("accuracy", "auc"), ("accuracy", "f1_positive")

SUITES: tuple[Suite, ...] = (
    Suite(
        "neucrowd_table2",
        "NeuCrowd, table 2",
        (
            case("hotel", f"mv_lr softprob {METRIC_LEARNING} neucrowd"),
            case(_SYNTHETIC, f"mv_lr softprob ds_lr glad_lr {METRIC_LEARNING} {_WITH_DS} neucrowd"),
        ),
        _NEUCROWD_METRICS,
        baseline="mv_lr",
        note=(
            "Hotel is published as vote counts, so what needs annotator identities (EM, GLAD)"
            " cannot run on it; its test labels are majority votes."
        ),
    ),
    Suite(
        "neucrowd_table3",
        "NeuCrowd, table 3 (ablations)",
        (case(_ALL, _NEUCROWD),),
        _NEUCROWD_METRICS,
        baseline="neucrowd",
    ),
    Suite(
        "neucrowd_fig2",
        "NeuCrowd, figure 2 (training loss by epoch)",
        (case("hotel", _NEUCROWD, "epochs=50", hparams={"epochs": 50}),),
        _NEUCROWD_METRICS,
        analysis=curves.training_loss,
        note=(
            "Losses of batches that a sampling network makes harder are not losses of the same"
            " tuplets; the curves show how each method trains."
        ),
    ),
    Suite(
        "neucrowd_cv",
        "NeuCrowd, hotel under 5 x 5 repeated cross-validation (ours)",
        (
            case(
                "hotel",
                f"mv_lr softprob {METRIC_LEARNING} relation_net {_RLL} {_NEUCROWD}",
                "cv=5x5",
                seeds=1,
                options={"evaluation": "cv", "folds": 5, "repeats": 5},
            ),
        ),
        _NEUCROWD_METRICS,
        baseline="mv_lr",
        note=(
            "Pooled reviews without duplicates; the paper's split has 140 test reviews, so one of"
            " them is .7 points."
        ),
    ),
    Suite(
        "rll_table1",
        "RLL, table I",
        (
            case("hotel", f"softprob contrastive triplet relation_net {_RLL}"),
            case(_SYNTHETIC, f"softprob ds_lr glad_lr contrastive triplet {_RLL}"),
            case(_SYNTHETIC, f"relation_net {_WITH_BOTH}"),
        ),
        _RLL_METRICS,
        baseline="softprob",
        note=_OWN_NAMES,
    ),
    Suite(
        "rll_table2",
        "RLL, table II (k negatives)",
        tuple(case(_ALL, "rll_bayesian", f"k={k}", hparams={"k": k}, x=k) for k in (2, 3, 4, 5)),
        _RLL_METRICS,
        analysis=curves.over_settings,
        note=_OWN_NAMES,
    ),
    Suite(
        "rll_table3",
        "RLL, table III (d annotators)",
        tuple(
            case(_ALL, "rll_bayesian", f"d={d}", hparams={"annotators_per_instance": d}, x=d)
            for d in (1, 3, 5)
        ),
        _RLL_METRICS,
        analysis=curves.over_settings,
        note=_OWN_NAMES,
    ),
)
