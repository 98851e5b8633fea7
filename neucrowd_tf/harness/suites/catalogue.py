"""All suites in one place, as data."""

from __future__ import annotations

from neucrowd_tf.errors import UsageError
from neucrowd_tf.harness.suites import papers
from neucrowd_tf.harness.suites.suite import Case, Suite

_METRIC_LEARNING = ("contrastive", "triplet", "triplet_semi", "center", "lifted")
_WITH_NAMES = tuple(f"{name}_{labels}" for name in (*_METRIC_LEARNING, "relation_net") for labels in ("ds", "glad"))
_GROUP_1 = ("mv_lr", "softprob", "ds_lr", "glad_lr")
_BASES = ("anno_reg", "crowd_layer", "wdn")
_NEUCROWD = ("neucrowd_no_sa_ra_sn", "neucrowd_no_sa_ra", "neucrowd_no_sa", "neucrowd")
_RLL = ("rll", "rll_mle", "rll_bayesian")
_OWN_NAMES = "The paper's datasets are private; the same methods on hotel, syn1 and syn2 stand under those names."
_LABELME_MUSIC = ("labelme", "music")
_HEAVY = ("labelme_ovr_0", "labelme_ovr_5", "digits_ovr_8")


def _each(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{prefix}_{base}" if prefix else base for prefix in prefixes for base in _BASES)


SUITES: tuple[Suite, ...] = (
    Suite(
        "neucrowd_table2",
        "NeuCrowd, table 2",
        (
            Case(("hotel",), ("mv_lr", "softprob", *_METRIC_LEARNING, "neucrowd")),
            Case(("syn1", "syn2"), (*_GROUP_1, *_METRIC_LEARNING, *(f"{name}_ds" for name in _METRIC_LEARNING), "neucrowd")),
        ),
        ("accuracy", "auc"),
        papers.NEUCROWD_TABLE2,
        note="Hotel is published as vote counts, so what needs annotator identities (EM, GLAD) cannot run on it; its test labels are majority votes.",
    ),
    Suite(
        "neucrowd_table3",
        "NeuCrowd, table 3 (ablations)",
        (Case(("hotel", "syn1", "syn2"), _NEUCROWD),),
        ("accuracy", "auc"),
        papers.NEUCROWD_TABLE3,
    ),
    Suite(
        "neucrowd_fig2",
        "NeuCrowd, figure 2 (training loss by epoch)",
        (Case(("hotel",), _NEUCROWD, "epochs=50", seeds=3, hparams={"epochs": 50}),),
        ("accuracy", "auc"),
        analysis="neucrowd_tf.harness.suites.curves:training_loss",
        note="Losses of batches that a sampling network makes harder are not losses of the same tuplets; the curves show how each method trains.",
    ),
    Suite(
        "neucrowd_cv",
        "Hotel under 5 x 5 repeated cross-validation (ours)",
        (
            Case(
                ("hotel",),
                ("mv_lr", "softprob", *_METRIC_LEARNING, "relation_net", *_RLL, *_NEUCROWD),
                "cv=5x5",
                seeds=1,
                options={"evaluation": "cv", "folds": 5, "repeats": 5},
            ),
        ),
        ("accuracy", "auc"),
        note="Pooled reviews without duplicates; the paper's split has 140 test reviews, so one of them is .7 points.",
    ),
    Suite(
        "rll_table1",
        "RLL, table I",
        (
            Case(("hotel",), ("softprob", "contrastive", "triplet", "relation_net", *_RLL)),
            Case(("syn1", "syn2"), ("softprob", "ds_lr", "glad_lr", "contrastive", "triplet", *_RLL)),
            Case(("syn1", "syn2"), ("relation_net", *_WITH_NAMES), seeds=3),
        ),
        ("accuracy", "f1_positive"),
        papers.RLL_TABLE1,
        note=_OWN_NAMES,
    ),
    Suite(
        "rll_table2",
        "RLL, table II (k negatives)",
        tuple(Case(("hotel", "syn1", "syn2"), ("rll_bayesian",), f"k={k}", hparams={"k": k}) for k in (2, 3, 4, 5)),
        ("accuracy", "f1_positive"),
        papers.RLL_TABLE2,
        x="k",
        note=_OWN_NAMES,
    ),
    Suite(
        "rll_table3",
        "RLL, table III (d annotators)",
        tuple(Case(("hotel", "syn1", "syn2"), ("rll_bayesian",), f"d={d}", hparams={"annotators_per_instance": d}) for d in (1, 3, 5)),
        ("accuracy", "f1_positive"),
        papers.RLL_TABLE3,
        x="d",
        note=_OWN_NAMES,
    ),
    Suite(
        "dasc_table2",
        "DASC, table 2",
        (
            Case(
                _LABELME_MUSIC,
                ("gold_dl", "mv_dl", "ds_dl", *_each(("", "resampling", "reweighting", "focal", "confidence", "random", "dasc"))),
            ),
        ),
        ("accuracy",),
        papers.DASC_TABLE2,
    ),
    Suite(
        "dasc_fig1",
        "DASC, figure 1 (confidence alone skews the annotations)",
        (Case(("labelme",), ("confidence_crowd_layer", "random_crowd_layer", "dasc_crowd_layer"), seeds=3),),
        analysis="neucrowd_tf.harness.suites.curves:imbalance_by_round",
    ),
    Suite(
        "dasc_fig4",
        "DASC, figure 4 (imbalance ratio R by round)",
        (Case(_LABELME_MUSIC, _each(("confidence", "random", "dasc")), seeds=3),),
        analysis="neucrowd_tf.harness.suites.curves:imbalance_by_round",
    ),
    Suite(
        "dasc_fig6",
        "DASC, figure 6 (annotations removed)",
        tuple(
            Case(
                _LABELME_MUSIC,
                ("mv_dl", "crowd_layer", "confidence_crowd_layer", "dasc_crowd_layer"),
                f"keep={keep}",
                seeds=3,
                options={"keep_annotations": keep},
            )
            for keep in (0.2, 0.4, 0.6, 0.8)
        ),
        x="keep",
    ),
    Suite(
        "dasc_fig7",
        "DASC, figure 7 (imbalance losses with self-training)",
        (Case(_LABELME_MUSIC, ("focal_self_crowd_layer", "cb_focal_self_crowd_layer", "dasc_crowd_layer")),),
        analysis="neucrowd_tf.harness.suites.curves:imbalance_by_round",
    ),
    Suite(
        "dasc_fig8",
        "DASC, figure 8 (heavy imbalance)",
        (Case(_HEAVY, _each(("", "confidence", "random", "dasc")), seeds=3),),
        ("accuracy", "balanced_accuracy"),
        analysis="neucrowd_tf.harness.suites.curves:imbalance_by_round",
        note="Data1 and Data2 are not published in a form that can be had; one class against the rest of public data stands in, under its own name.",
    ),
    Suite(
        "crowding_table1",
        "CrowdInG, table 1 (augmentations)",
        (Case(_LABELME_MUSIC, ("dl_cl", "doctor_net", "dl_cl_self", "dl_cl_gcn", "dl_cl_gan", "dl_cl_ing", "crowding")),),
        ("accuracy",),
        papers.CROWDING_TABLE1,
    ),
    Suite(
        "crowding_table2",
        "CrowdInG, table 2 (variants)",
        (Case(_LABELME_MUSIC, ("crowdg", "crowdingu", "crowdingi", "crowdingr", "crowding_no_lca", "crowding")),),
        ("accuracy",),
        papers.CROWDING_TABLE2,
        note="crowding_no_lca is ours.",
    ),
    Suite(
        "crowding_fig2",
        "CrowdInG, figure 2 (accuracy by entropy; one step against two)",
        (Case(_LABELME_MUSIC, ("crowding", "crowding_one_step"), seeds=3),),
        analysis="neucrowd_tf.harness.suites.curves:validation_accuracy",
    ),
    Suite(
        "crowding_fig3",
        "CrowdInG, figure 3 (rivals)",
        (Case(_LABELME_MUSIC, ("mv_dl", "dl_cl", "anno_reg", "max_mig", "aggnet", "crowding")),),
        analysis="neucrowd_tf.harness.suites.curves:validation_accuracy",
    ),
    Suite(
        "crowding_fig5",
        "CrowdInG, figure 5 (annotations removed)",
        tuple(
            Case(_LABELME_MUSIC, ("mv_dl", "dl_cl", "crowding"), f"keep={keep},one", seeds=3, options={"keep_annotations": keep, "keep_one": True})
            for keep in (0.2, 0.4, 0.6, 0.8)
        ),
        x="keep",
    ),
    Suite(
        "crowding_fig6",
        "CrowdInG, figure 6 (lambda and t)",
        (
            *(Case(_LABELME_MUSIC, ("crowding",), f"lambda={v}", seeds=3, hparams={"information": v}) for v in (0.1, 0.25, 0.5, 0.75, 1.0)),
            *(Case(_LABELME_MUSIC, ("crowding",), f"t={v}", seeds=3, hparams={"threshold": v}) for v in (0.2, 0.35, 0.5, 0.65, 0.8)),
        ),
        x="lambda, t",
    ),
    Suite(
        "iced_table2",
        "ICED, table 2",
        (Case(("usps_syn", "gsad_syn", "gisette_syn"), ("mv_lr", "mv_dnn", "ds_lr", "ds_dnn", "crowd_layer", "mbem", "cpc", "iced"), seeds=10),),
        ("accuracy", "f1"),
        papers.ICED_TABLE2,
        note="The paper's appendices are not published, so the sets follow a recipe of the same sizes; gsad_syn is easier than the paper's.",
    ),
)


def names() -> list[str]:
    """Returns every suite's name, and "smoke" and "all"."""
    return [*(suite.name for suite in SUITES), "smoke", "all"]


def find(name: str) -> Suite:
    """Returns the suite of that name.

    Raises:
        UsageError: there is none.
    """
    for suite in SUITES:
        if suite.name == name:
            return suite
    raise UsageError(f"--suite: expected one of {', '.join(names())}, received {name!r}")
