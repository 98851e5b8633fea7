"""NeuCrowd's and RLL's tables and figures."""

from __future__ import annotations

from reproduction import curves
from reproduction.printed import TABLES
from reproduction.suite import Case, Suite

METRIC_LEARNING = ("contrastive", "triplet", "triplet_semi", "center", "lifted")
_WITH_NAMES = tuple(
    f"{name}_{labels}" for name in (*METRIC_LEARNING, "relation_net") for labels in ("ds", "glad")
)
_NEUCROWD = ("neucrowd_no_sa_ra_sn", "neucrowd_no_sa_ra", "neucrowd_no_sa", "neucrowd")
_RLL = ("rll", "rll_mle", "rll_bayesian")
_OWN_NAMES = (
    "The paper's datasets are private; the same methods on hotel, syn1 and syn2 stand under those"
    " names."
)
_ALL = ("hotel", "syn1", "syn2")

SUITES: tuple[Suite, ...] = (
    Suite(
        "neucrowd_table2",
        "NeuCrowd, table 2",
        (
            Case(("hotel",), ("mv_lr", "softprob", *METRIC_LEARNING, "neucrowd")),
            Case(
                ("syn1", "syn2"),
                (
                    "mv_lr",
                    "softprob",
                    "ds_lr",
                    "glad_lr",
                    *METRIC_LEARNING,
                    *(f"{name}_ds" for name in METRIC_LEARNING),
                    "neucrowd",
                ),
            ),
        ),
        ("accuracy", "auc"),
        TABLES["neucrowd_table2"],
        baseline="mv_lr",
        note=(
            "Hotel is published as vote counts, so what needs annotator identities (EM, GLAD)"
            " cannot run on it; its test labels are majority votes."
        ),
    ),
    Suite(
        "neucrowd_table3",
        "NeuCrowd, table 3 (ablations)",
        (Case(_ALL, _NEUCROWD),),
        ("accuracy", "auc"),
        TABLES["neucrowd_table3"],
        baseline="neucrowd",
    ),
    Suite(
        "neucrowd_fig2",
        "NeuCrowd, figure 2 (training loss by epoch)",
        (Case(("hotel",), _NEUCROWD, "epochs=50", hparams={"epochs": 50}),),
        ("accuracy", "auc"),
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
            Case(
                ("hotel",),
                ("mv_lr", "softprob", *METRIC_LEARNING, "relation_net", *_RLL, *_NEUCROWD),
                "cv=5x5",
                seeds=1,
                options={"evaluation": "cv", "folds": 5, "repeats": 5},
            ),
        ),
        ("accuracy", "auc"),
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
            Case(("hotel",), ("softprob", "contrastive", "triplet", "relation_net", *_RLL)),
            Case(
                ("syn1", "syn2"), ("softprob", "ds_lr", "glad_lr", "contrastive", "triplet", *_RLL)
            ),
            Case(("syn1", "syn2"), ("relation_net", *_WITH_NAMES)),
        ),
        ("accuracy", "f1_positive"),
        TABLES["rll_table1"],
        baseline="softprob",
        note=_OWN_NAMES,
    ),
    Suite(
        "rll_table2",
        "RLL, table II (k negatives)",
        tuple(Case(_ALL, ("rll_bayesian",), f"k={k}", hparams={"k": k}, x=k) for k in (2, 3, 4, 5)),
        ("accuracy", "f1_positive"),
        TABLES["rll_table2"],
        analysis=curves.over_settings,
        note=_OWN_NAMES,
    ),
    Suite(
        "rll_table3",
        "RLL, table III (d annotators)",
        tuple(
            Case(_ALL, ("rll_bayesian",), f"d={d}", hparams={"annotators_per_instance": d}, x=d)
            for d in (1, 3, 5)
        ),
        ("accuracy", "f1_positive"),
        TABLES["rll_table3"],
        analysis=curves.over_settings,
        note=_OWN_NAMES,
    ),
)
