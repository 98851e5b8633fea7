"""CrowdInG's tables and figures."""

from __future__ import annotations

from reproduction import crowding_figures
from reproduction.suite import Case, Suite, case

_LABELME_MUSIC = "labelme music"
# Section 4.1's 40 epochs of the game; nothing stops a collapse in the curves.
_GAME = {"epochs": 40, "collapse_drop": 1.0, "refit": False}
LAMBDAS = (0.1, 0.25, 0.5, 0.75, 1.0)
THRESHOLDS = (0.2, 0.35, 0.5, 0.65, 0.8)


def _game(methods: str) -> Case:
    return case(
        _LABELME_MUSIC, methods, "game=40", seeds=3, hparams=_GAME, options={"curves": True}
    )


def _keep(share: float) -> Case:
    options = {"keep_annotations": share, "keep_one": True}
    return case(
        _LABELME_MUSIC, "mv_dl dl_cl crowding", f"keep={share},one", options=options, x=share
    )


SUITES: tuple[Suite, ...] = (
    Suite(
        "crowding_table1",
        "CrowdInG, table 1 (augmentations)",
        (
            case(
                _LABELME_MUSIC, "dl_cl doctor_net dl_cl_self dl_cl_gcn dl_cl_gan dl_cl_ing crowding"
            ),
        ),
        baseline="dl_cl",
    ),
    Suite(
        "crowding_table2",
        "CrowdInG, table 2 (variants)",
        (
            case(
                _LABELME_MUSIC,
                "dl_cl crowdg crowdingu crowdingi crowdingr crowding_no_lca crowding_one_step"
                " crowding",
            ),
        ),
        baseline="dl_cl",
        note="crowding_no_lca is ours; the paper has crowding_one_step in figure 2b.",
    ),
    Suite(
        "crowding_fig2",
        "CrowdInG, figure 2 (accuracy by entropy; one step against two)",
        (case(_LABELME_MUSIC, "dl_cl", seeds=3), _game("crowding crowding_one_step")),
        analysis=crowding_figures.figure_2,
        note=(
            "Forty epochs of the game without the guard that stops a collapse; the table's accuracy"
            " is that of the best epoch, the curves have all."
        ),
    ),
    Suite(
        "crowding_fig3",
        "CrowdInG, figure 3 (rivals)",
        (
            case(_LABELME_MUSIC, "mv_dl dl_cl anno_reg max_mig aggnet mbem crowding"),
            case(
                _LABELME_MUSIC,
                "mv_dl anno_reg max_mig aggnet",
                "curves",
                seeds=3,
                options={"curves": True},
            ),
            _game("crowding"),
        ),
        baseline="dl_cl",
        analysis=crowding_figures.figure_3,
        note=(
            "Rows named game=40 and curves are the runs behind the training and test curves."
            " game=40 has no guard, and on Music does not train on the instances that are held out"
            " to choose an epoch."
        ),
    ),
    Suite(
        "crowding_fig4",
        "CrowdInG, figure 4 (annotators of LabelMe and Music)",
        (),
        analysis=crowding_figures.figure_4,
    ),
    Suite(
        "crowding_fig5",
        "CrowdInG, figure 5 (annotations removed, each instance keeps one)",
        (
            case(_LABELME_MUSIC, "mv_dl dl_cl crowding", x=1.0),
            *(_keep(share) for share in (0.8, 0.6, 0.4, 0.2)),
        ),
        baseline="dl_cl",
        analysis=crowding_figures.figure_5,
        note=(
            "Each instance keeps one annotation, so no more than 61 % of LabelMe's and 76 % of"
            " Music's can go; the axis is the share asked for."
        ),
    ),
    Suite(
        "crowding_fig6",
        "CrowdInG, figure 6 (lambda and t)",
        (
            case(_LABELME_MUSIC, "dl_cl"),
            *(
                case(_LABELME_MUSIC, "crowding", f"lambda={v}", hparams={"information": v}, x=v)
                for v in LAMBDAS
            ),
            *(
                case(_LABELME_MUSIC, "crowding", f"t={v}", hparams={"threshold": v}, x=v)
                for v in THRESHOLDS
            ),
        ),
        baseline="dl_cl",
        analysis=crowding_figures.figure_6,
    ),
)
