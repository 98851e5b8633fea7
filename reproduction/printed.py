"""What the papers print, each figure once: `TABLES[table][(dataset, method)]` maps a metric to
(mean, standard deviation or None).

Datasets and methods have this project's names; a dataset that nobody published keeps the paper's.
Settings of a table (k, d) precede the method as "k=3/". Accuracies are shares, not per cent.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from neucrowd_tf import registry

Figure = tuple[float, float | None]
Table = dict[tuple[str, str], dict[str, Figure]]
# Datasets that the papers describe and nobody published.
PRIVATE = frozenset({"pre_k", "oral", "class", "emotion"})
# Published, but not part of the usual data folder: a table shows them when a user has them.
ELSEWHERE = frozenset({"cifar10h", "cifar10h_lt", "gisette_syn"})
# A heading has the table, its datasets and its metrics; a line has a method and its figures, for
# each dataset those of all metrics. "-" is no figure; mean/deviation is in per cent.
_TABLES = """
# Hao, Ding, Liu: NeuCrowd, tables 2 and 3. Softprob is printed as not converging on Pre-K.
[neucrowd_table2 | syn1 syn2 pre_k hotel oral | accuracy auc]
softprob        .666 .720 .664 .734    -    - .850 .921 .825 .940
ds_lr           .652 .717 .666 .732 .830 .923 .857 .918 .815 .949
glad_lr         .614 .664 .636 .701 .830 .923 .850 .911 .805 .948
contrastive     .580 .590 .600 .579 .820 .873 .850 .908 .855 .905
triplet         .654 .695 .644 .683 .850 .883 .864 .916 .795 .927
triplet_semi    .638 .678 .626 .641 .650 .628 .771 .795 .840 .920
center          .594 .612 .594 .605 .760 .801 .843 .912 .850 .957
lifted          .588 .596 .598 .614 .740 .784 .836 .887 .860 .940
contrastive_ds  .596 .605 .612 .622 .800 .855 .850 .906 .865 .950
triplet_ds      .650 .661 .672 .772 .860 .918 .864 .918 .865 .954
triplet_semi_ds .616 .653 .640 .685 .745 .725 .750 .792 .850 .908
center_ds       .594 .600 .592 .620 .790 .794 .850 .918 .865 .948
lifted_ds       .588 .600 .600 .616 .720 .740 .857 .911 .860 .944
neucrowd        .678 .729 .688 .751 .870 .898 .871 .928 .865 .927
[neucrowd_table3 | syn1 syn2 pre_k hotel oral | accuracy auc]
neucrowd_no_sa_ra_sn .650 .712 .674 .662 .806 .870 .770 .838 .837 .908
neucrowd_no_sa_ra    .665 .713 .664 .720 .806 .882 .850 .921 .810 .904
neucrowd_no_sa       .670 .714 .680 .723 .822 .869 .857 .823 .884 .948
neucrowd             .678 .729 .688 .751 .870 .898 .871 .928 .865 .927
# Xu et al.: RLL, tables I, II (k negatives) and III (d annotators). Both datasets are private.
[rll_table1 | oral class | accuracy f1_positive]
softprob          .815 .869 .758 .810
ds_lr             .843 .887 .606 .698
glad_lr           .831 .881 .697 .773
contrastive       .802 .859 .719 .836
triplet           .847 .889 .750 .857
relation_net      .843 .890 .730 .842
contrastive_ds    .798 .856 .727 .842
contrastive_glad  .815 .871 .727 .842
triplet_ds        .843 .887 .727 .842
triplet_glad      .843 .890 .667 .792
relation_net_ds   .860 .899 .727 .842
relation_net_glad .854 .889 .730 .842
rll               .871 .901 .818 .880
rll_mle           .871 .903 .848 .902
rll_bayesian      .888 .915 .879 .920
[rll_table2 | oral class | accuracy f1_positive]
k=2/rll_bayesian .809 .852 .699 .813
k=3/rll_bayesian .888 .915 .879 .920
k=4/rll_bayesian .831 .875 .757 .855
k=5/rll_bayesian .803 .851 .750 .846
[rll_table3 | oral class | accuracy f1_positive]
d=1/rll_bayesian .826 .873 .727 .842
d=3/rll_bayesian .876 .922 .758 .840
d=5/rll_bayesian .888 .915 .879 .920
# DASC, table 2 (mean and standard deviation over 5 repetitions). Self-training's figures are those
# of its last round, which is what the paper predicts with.
[dasc_table2 | labelme music cifar10h_lt | accuracy]
mv_dl                    81.3/.4 59.3/1.7  44.9/.7
ds_dl                    82.2/.4  65.2/.8  43.4/.8
anno_reg                 82.3/.3  65.8/.7 40.9/1.0
crowd_layer              84.0/.3 66.3/1.5  45.6/.5
wdn                     77.1/2.6 55.1/4.0 17.3/1.1
resampling_anno_reg      83.2/.5 66.3/2.0 43.9/1.8
resampling_crowd_layer   85.6/.7 68.3/1.1 48.6/1.7
resampling_wdn          80.6/1.0 51.6/1.3  18.2/.5
reweighting_anno_reg     83.6/.4 67.1/1.1 41.4/1.0
reweighting_crowd_layer  85.6/.3  66.7/.6  47.7/.8
reweighting_wdn         78.8/1.6 56.2/1.4 17.6/1.3
focal_anno_reg           81.7/.4 63.4/1.2  39.7/.4
focal_crowd_layer        84.2/.2  65.0/.6 47.6/1.2
focal_wdn               78.4/1.5 57.5/2.4 17.9/1.3
[dasc_table2 | labelme music cifar10h_lt | last_round_accuracy]
confidence_anno_reg      82.4/.2  65.8/.9 49.4/1.2
confidence_crowd_layer  71.4/7.3  57.6/.8 48.8/1.0
confidence_wdn          77.7/1.7 61.5/1.7 31.9/1.7
random_anno_reg         83.3/1.2 66.7/1.0 49.0/1.5
random_crowd_layer       77.3/.3 63.2/1.5 51.2/3.5
random_wdn              74.3/1.2 60.1/1.8  14.7/.6
dasc_anno_reg            85.6/.3 68.0/1.1 51.0/1.3
dasc_crowd_layer         87.6/.4  68.5/.5  55.3/.6
dasc_wdn                 82.3/.9 65.7/1.4 36.9/1.7
# Chu and Wang: CrowdInG, tables 1 and 2.
[crowding_table1 | labelme music cifar10h | accuracy]
doctor_net 82.12/.43 75.41/.42 67.23/.54
dl_cl_self 85.24/.51 82.56/.49 64.94/.84
dl_cl_gcn  82.74/.34 81.42/.74 65.02/.61
dl_cl_gan  85.16/.26 83.17/.48 65.34/.32
dl_cl_ing  85.42/.57 83.38/.59 66.17/.35
crowding   87.03/.55 83.73/.62 68.85/.47
[crowding_table2 | labelme music cifar10h | accuracy]
crowdg    85.89/.47 83.14/.28 66.15/.34
crowdingu 83.12/.39 81.28/.51 67.12/.59
crowdingi 84.34/.72 82.24/.47 66.90/.31
crowdingr 86.17/.44 82.74/.58 67.88/.62
crowding  87.03/.55 83.73/.62 68.85/.47
# Wang et al.: ICED, tables 2 and 3 (warm-up alone: Trad-I, Trad-II, ICED-w).
[iced_table2 | gisette_syn usps_syn gsad_syn emotion | accuracy f1]
mv_lr       .8179 .8175 .8494 .8480 .7094 .6872 .8289 .8277
mv_dnn      .8000 .7979 .8735 .8732 .8333 .8327 .7944 .7901
ds_lr       .7671 .7592 .8193 .8136 .6974 .6716 .8311 .8294
ds_dnn      .7636 .7562 .7530 .7386 .8085 .8082 .7811 .7749
crowd_layer .8200 .8167 .9006 .8998 .8342 .8295 .8300 .8273
mbem        .6967 .4211 .7813 .5334 .6826 .5577 .6344 .5324
cpc         .8021 .8020 .8313 .8311 .6154 .5917     -     -
iced        .8521 .8512 .9036 .9030 .8872 .8865 .8644 .8640
[iced_table3 | gisette_syn | accuracy f1]
warm_up=all,15_epochs/iced .8014 .7989
warm_up=top,15_epochs/iced .6079 .5372
warm_up=groups,15_epochs/iced .8186 .8126
[iced_table3 | usps_syn gsad_syn | accuracy f1]
warm_up=all,6_epochs/iced .7500 .7333 .4581 .3142
warm_up=top,6_epochs/iced .7922 .7828 .4504 .3105
warm_up=groups,6_epochs/iced .8373 .8329 .8376 .8332
"""
# What the papers print of the datasets that nobody published; of the others it stands with the data
# (`Card.paper`). A heading has the paper and the statistics; ratios are those of annotations and of
# the truth.
_DATASETS = """
[NeuCrowd | num_annotators num_features train_size validation_size test_size kappa class_ratio]
pre_k 11 1632 940 247 300 .60 .65
oral  11   50 908 384 200 .41 .70
[DASC | train_size test_size imbalance_ratio truth_imbalance_ratio mean_annotator_accuracy \
std_annotator_accuracy annotations_per_annotator]
data1_label_2  1258 200 6.530  5.989 .927 .025 347.8
data1_label_4  1258 200 8.003 10.541 .925 .023 348.1
data1_label_9  1258 200 7.073  7.169 .914 .038 347.1
data1_label_12 1158 300 4.903  4.732 .955 .030 318.3
data2_label_3   500 200 3.104  3.587 .898 .041 188.5
data2_label_4   500 200 4.667  5.024 .891 .048 193.9
[ICED | num_features train_size num_annotators test_size]
emotion 1582 3027 5 900
"""


def _lines(text: str) -> Iterator[tuple[list[str], str, list[str]]]:
    """Yields the parts of the heading, the name and the cells of each line."""
    heading: list[str] = []
    for line in text.splitlines():
        if line.startswith("["):
            heading = line.strip("[]").split(" | ")
        elif line and not line.startswith("#"):
            name, *cells = line.split()
            yield heading, name, cells


def _figure(cell: str) -> Figure:
    if "/" not in cell:
        return float(cell), None
    mean, deviation = cell.split("/")
    return float(mean) / 100, float(deviation) / 100


def _tables() -> dict[str, Table]:
    tables: dict[str, Table] = {}
    for (name, datasets, metrics), method, cells in _lines(_TABLES):
        table = tables.setdefault(name, {})
        columns = product(datasets.split(), metrics.split())
        for (dataset, metric), cell in zip(columns, cells, strict=True):
            if cell != "-":
                table.setdefault((dataset, method), {})[metric] = _figure(cell)
    return tables


def _datasets() -> dict[str, dict[str, dict[str, float]]]:
    papers: dict[str, dict[str, dict[str, float]]] = {}
    for (paper, statistics), dataset, cells in _lines(_DATASETS):
        numbers = [float(cell) if "." in cell else int(cell) for cell in cells]
        row = dict(zip(statistics.split(), numbers, strict=True))
        papers.setdefault(paper, {})[dataset] = row
    return papers


TABLES = _tables()
DATASETS = _datasets()


def register() -> None:
    """Registers NeuCrowd's figures on public data, to stand beside ours in summary.csv."""
    for name in ("neucrowd_table2", "neucrowd_table3"):
        for (dataset, method), row in TABLES[name].items():
            if dataset not in PRIVATE:
                figures = {metric: mean for metric, (mean, _) in row.items()}
                registry.register_printed(dataset, method, figures)
