"""DASC's tables and figures."""

from __future__ import annotations

from reproduction import dasc_figures
from reproduction.suite import Case, Suite, case

BASES = "anno_reg crowd_layer wdn"
SELECTIONS = "confidence random dasc"
_LABELME_MUSIC = "labelme music"
_HEAVY = "labelme_ovr_0 labelme_ovr_4 digits_ovr_8"
# M/10, and steps for 1,000 images.
_SCALED = {
    "dasc_anno_reg.quota": 2_000,
    "dasc_crowd_layer.quota": 1_000,
    "dasc_wdn.quota": 1_000,
    "batch_size": 100,
    "epochs": 50,
}
# Ten copies of each image: M as printed takes all copies of a cell together, as they are equally
# sure, so that it is M/10 of the cells and ten times the batches an epoch.
_TENFOLD = {**_SCALED, "batch_size": 512, "epochs": 250}
_AS_PRINTED = {
    "dasc_anno_reg.quota": 20_000,
    "dasc_crowd_layer.quota": 10_000,
    "dasc_wdn.quota": 10_000,
    "batch_size": 512,
    "epochs": 25,
}
_METRICS = ("accuracy", "last_round_accuracy")
_ROUNDS = (
    "`accuracy` is that of the round that the method picks, by validation data or, on Music, by"
    " held-out instances against their majority votes; `last_round_accuracy` that of the last"
    " round, which is what the paper prints."
)


def _each(prefixes: str, bases: str = BASES) -> str:
    return " ".join(f"{prefix}_{base}" for prefix in prefixes.split() for base in bases.split())


_BOTH = "anno_reg crowd_layer"
_TWO = _each(SELECTIONS, _BOTH)


def _keep(share: float) -> Case:
    return case(_LABELME_MUSIC, _TWO, f"keep={share}", options={"keep_annotations": share}, x=share)


SUITES: tuple[Suite, ...] = (
    Suite(
        "dasc_table2",
        "DASC, table 2",
        (
            case(
                _LABELME_MUSIC,
                "gold_dl mv_dl ds_dl "
                f"{BASES} {_each(f'resampling reweighting focal {SELECTIONS}')}",
            ),
        ),
        _METRICS,
        baseline="crowd_layer",
        note=f"{_ROUNDS} gold_dl trains on the truth: an upper bound, no crowd method.",
    ),
    Suite(
        "dasc_scale",
        "DASC, LabelMe with M and steps for 1,000 images (ours)",
        (
            case("labelme", _each("dasc"), "printed M", hparams=_AS_PRINTED),
            case("labelme", _each("dasc"), "M/10, 500 steps", hparams=_SCALED),
            case("labelme", _each("dasc"), "tenfold", hparams=_TENFOLD),
        ),
        _METRICS,
        note=(
            "The printed settings belong to 10,000 augmented images; with the 1,000 that there are,"
            " five rounds of M = 10,000 fill 89 % of the empty cells, and 25 epochs are 50 steps."
            " tenfold is what ten copies of each image and M as printed come to: the copies of a"
            " cell are equally sure and join together, and an epoch has ten times the batches."
        ),
    ),
    Suite(
        "dasc_music",
        "DASC, Music on twenty seeds (ours)",
        (case("music", f"{_BOTH} {_each('dasc', _BOTH)}", seeds=20, first_seed=10_300),),
        _METRICS,
        baseline="crowd_layer",
        note="300 test songs, whose standard error is 2.7 points. Seeds from 10300 on.",
    ),
    Suite(
        "dasc_fig1",
        "DASC, figure 1 (confidence alone skews the annotations)",
        (case("labelme", "confidence_crowd_layer"),),
        _METRICS,
        analysis=dasc_figures.figure_1,
    ),
    Suite(
        "dasc_fig4",
        "DASC, figure 4 (imbalance ratio R by round)",
        (case(_LABELME_MUSIC, _each(SELECTIONS)),),
        _METRICS,
        analysis=dasc_figures.figure_4,
    ),
    Suite(
        "dasc_fig5",
        "DASC, figure 5 (precision on majority, recall on minority classes of the first and fifth"
        " selection)",
        (case(_LABELME_MUSIC, _each(SELECTIONS)),),
        _METRICS,
        analysis=dasc_figures.figure_5,
        note=(
            "From the truth of training instances, after the fit. Anno-Reg on LabelMe has no fifth"
            " selection: its empty cells run out in the third."
        ),
    ),
    Suite(
        "dasc_fig6",
        "DASC, figure 6 (annotations removed)",
        (case(_LABELME_MUSIC, _TWO, x=1.0), *map(_keep, (0.8, 0.6, 0.4, 0.2))),
        _METRICS,
        analysis=dasc_figures.figure_6,
        note=(
            f"{_ROUNDS} CE is round 0 of DASC: the base model. Weighted Doctor Net is left out, for"
            " time."
        ),
    ),
    Suite(
        "dasc_fig7",
        "DASC, figure 7 (imbalance losses with self-training)",
        (case(_LABELME_MUSIC, _each("focal_self cb_focal_self dasc", "crowd_layer")),),
        _METRICS,
        baseline="dasc_crowd_layer",
        analysis=dasc_figures.by_round,
        note=_ROUNDS,
    ),
    Suite(
        "dasc_fig8",
        "DASC, figure 8 (heavy imbalance, 14 rounds)",
        (
            case(_HEAVY, _each(SELECTIONS, "crowd_layer"), seeds=3),
            case("labelme_ovr_0", _each(SELECTIONS, "anno_reg"), seeds=1),
        ),
        ("accuracy", "balanced_accuracy", "last_round_accuracy"),
        analysis=dasc_figures.by_round,
        note=(
            "Data1 and Data2 are not published in a form that can be had; one class against the"
            " rest of public data stands in, under its own name."
        ),
    ),
    Suite(
        "dasc_cifar10n",
        "DASC, long-tailed CIFAR-10N with a small CNN (ours)",
        (case("cifar10n_lt", f"crowd_layer {_each('confidence dasc', 'crowd_layer')}", seeds=1),),
        _METRICS,
        analysis=dasc_figures.by_round,
        note=(
            "4,761 of 10,000 training images, class sizes 5 to 1, one seed. The paper's CIFAR10-H"
            " is not in the data folder."
        ),
    ),
)
