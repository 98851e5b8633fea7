"""What to label again, by whom: the scores, the plan, the command and the replay."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose

from neucrowd_tf.aggregation import DawidSkene
from neucrowd_tf.aggregation.crowd_and_classifier import calibrated
from neucrowd_tf.annotations import Annotations
from neucrowd_tf.annotations.simulation import confusion_annotators, from_skills, simulate, spammers
from neucrowd_tf.certainty.labelling import plan as plan_module
from neucrowd_tf.certainty.labelling.activelab import activelab_scores
from neucrowd_tf.certainty.labelling.belief import (
    Belief,
    belief_of,
    evidence_of,
    with_evidence,
    with_less_lean,
)
from neucrowd_tf.certainty.labelling.gain import Answers, most_gain
from neucrowd_tf.certainty.labelling.inputs import read_probabilities
from neucrowd_tf.certainty.labelling.plan import make_plan, worths
from neucrowd_tf.io.labels import read_annotations
from tests.crowds import array_of
from tests.io.importers.exports import label_studio

pytestmark = pytest.mark.usefixtures("inferred_once")


def simulated(seed: int, *, tasks: int, annotators: int, classes: int, each: int) -> Annotations:
    """A crowd of which a quarter gives random labels."""
    random = annotators // 4
    matrices = np.concatenate(
        [
            confusion_annotators(annotators - random, classes, seed, accuracy=0.65),
            spammers(random, classes, seed),
        ]
    )
    truth = default_rng([seed, 3]).integers(0, classes, tasks)
    return simulate(truth, matrices, seed, rates=each / annotators)


def believe(crowd: Annotations) -> Belief:
    return belief_of(crowd, DawidSkene().fit(crowd).probas_)


def random_belief(tasks: int = 7, annotators: int = 5, classes: int = 3) -> Belief:
    rng = default_rng(0)
    probas = rng.dirichlet(np.ones(classes), tasks)
    errors = rng.dirichlet(np.ones(classes), (annotators, classes))
    errors += 2 * np.eye(classes)
    return Belief(probas, errors / errors.sum(axis=2, keepdims=True), 0.7)


def crowd_of(labels: str) -> Annotations:
    """A row a task, a column an annotator, - where there is no label."""
    rows = labels.split()
    matrix = [["-0123".index(cell) - 1 for cell in row] for row in rows]
    return Annotations.from_dense(np.array(matrix))


# ----------------------------------------------------------------- gain


def test_gain_and_information_by_hand() -> None:
    probas, errors = np.array([0.6, 0.4]), array_of("0.9 0.1; 0.2 0.8")
    # Label 0: .6 * .9 = .54 or .4 * .2 = .08; label 1: .6 * .1 = .06 or .4 * .8 = .32. The best of
    # each add up to .86, which is .26 above .6.
    gain, information = Answers.of(errors[None]).values(probas[None])
    assert gain == pytest.approx(0.26)
    # The label is 0 with .62: H = .66406. It is noise of .6 * H(.9) + .4 * H(.8)
    # = .6 * .32508 + .4 * .50040 = .39521. The rest is .26885 nats.
    assert information == pytest.approx(0.26885, abs=1e-5)


def test_gain_and_information_are_their_formulas() -> None:
    belief = random_belief()
    gains, nats = Answers.of(belief.errors).values(belief.probas)
    p = belief.probas[:, None, :, None]
    joint = p * belief.errors  # [i, r, c, label]
    after = joint.max(axis=2).sum(axis=2)
    assert_allclose(gains, after - belief.probas.max(axis=1)[:, None], atol=1e-12)
    logs = np.log(joint / joint.sum(axis=2, keepdims=True) / p)
    assert_allclose(nats, (joint * logs).sum(axis=(2, 3)))


# ----------------------------------------------------------------- ActiveLab


def test_activelab_by_hand() -> None:
    crowd = crowd_of("00 00 11 11 01 0-")
    scores = activelab_scores(crowd, np.full((6, 2), 0.5))
    # Of the five tasks with two labels the consensus is 0 0 1 1 0, and labels agree with it by
    # (4 + .5) / 5 = .9. Always saying 0 errs .4 of the time, the two annotators differ .2 of the
    # time: each weighs 1 - .2 / .4 = .5; the classifier, no better than 0 always, nothing.
    # Agreed tasks: .9, with weight 1 beside an average annotator's .5 on 1/2: 1.15 / 1.5.
    # The disputed one: .5 * .9 + .5 * .1 = .5. That with one label: (.5 * .9 + .25) / 1.
    assert_allclose(scores, [1.15 / 1.5] * 4 + [0.5, 0.7], atol=1e-5)


def test_activelab_agrees_with_cleanlab(monkeypatch: pytest.MonkeyPatch) -> None:
    # What get_active_learning_scores (cleanlab 2.9) gives at temperature 1; the last instance has
    # no label there either (pred_probs_unlabeled).
    crowd = crowd_of("001 11- 0-- 101 -22 2-2 ---")
    shares = "7 2 1 2 7 1 .2 9 .8 5 3 2 1 1 8 2 2 6 6 3 1"
    probas = np.array(shares.split(), dtype=float).reshape(7, 3) / 10
    expected = [0.6510661, 0.70366701, 0.59300846, 0.45658848, 0.73724794, 0.65067145, 0.54427076]
    monkeypatch.setattr(
        "neucrowd_tf.certainty.labelling.activelab.calibrated", lambda probas, votes: probas
    )
    assert_allclose(activelab_scores(crowd, probas), expected, atol=1e-8)


def test_calibrated_finds_the_temperature() -> None:
    rng = default_rng(0)
    right = rng.dirichlet(np.ones(3), 2000)
    votes = np.array([rng.multinomial(5, row) for row in right]).astype(float)
    sharp = right**3 / (right**3).sum(axis=1, keepdims=True)
    assert_allclose(calibrated(sharp, votes), right, atol=0.02)


# ----------------------------------------------------------------- plan


def test_the_first_request_is_the_best_of_all_pairs() -> None:
    crowd, belief = crowd_of("0---- -1--- --2-- 0-1-- ----1 22--- 0-0-0"), random_belief()
    best = max(
        (worths([belief.probas[i][None]], Answers.of(belief.errors))[0][0][r], i, r)
        for i in range(7)
        for r in range(5)
        if crowd.to_dense()[i, r] < 0
    )
    request = make_plan(crowd, belief, 1)[0]
    assert (request.task, request.annotator) == best[1:]


def test_a_second_label_of_a_task_counts_what_the_first_may_say() -> None:
    belief = random_belief(1)
    crowd = Annotations([0], [4], [0], num_instances=1, num_annotators=5, num_classes=3)
    one, two = make_plan(crowd, belief, 2, most_each=1)
    p, first, second = belief.probas[0], *belief.errors[[one.annotator, two.annotator]]
    joint = [
        max(p[c] * first[c, a] * second[c, b] for c in range(3)) for a in range(3) for b in range(3)
    ]
    assert one.annotator != two.annotator != 4
    assert one.gain + two.gain == pytest.approx(sum(joint) - p.max())


def test_nobody_is_asked_twice_or_too_often() -> None:
    crowd = simulated(0, tasks=120, annotators=15, classes=3, each=3)
    belief = believe(crowd)
    plan = make_plan(crowd, belief, 60, per_task=2)
    pairs = [(request.task, request.annotator) for request in plan]
    answered = set(zip(crowd.instances.tolist(), crowd.annotators.tolist(), strict=True))
    assert len(plan) == 60 == len(set(pairs)) and not answered & set(pairs)
    assert np.bincount([r for _, r in pairs]).max() <= 8  # twice 60 / 15
    assert np.bincount([i for i, _ in pairs]).max() <= 2
    assert plan == make_plan(crowd, belief, 60, per_task=2)
    once = make_plan(crowd, belief, 15, most_each=1, per_task=1)
    assert len({r.annotator for r in once}) == 15 == len({r.task for r in once})


def test_tasks_that_cannot_be_worth_more_are_looked_at_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = simulated(0, tasks=120, annotators=15, classes=3, each=3)
    belief = believe(crowd)
    costs = np.linspace(1.0, 2.0, 15)
    monkeypatch.setattr(plan_module, "BLOCK", 1)
    one_by_one = make_plan(crowd, belief, 60, costs=costs)
    monkeypatch.setattr(plan_module, "SLACK", 10.0)  # every task is looked at
    assert one_by_one == make_plan(crowd, belief, 60, costs=costs)


def test_runners_up_come_next_as_if_all_were_compared_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = simulated(0, tasks=120, annotators=15, classes=3, each=3)
    belief = believe(crowd)
    errors = belief.errors.copy()
    errors[3:9] = errors[3]  # as good as each other
    belief = dataclasses.replace(belief, errors=errors)
    plans = []
    for runners_up in (1, 4, 15):
        monkeypatch.setattr(plan_module, "RUNNERS_UP", runners_up)
        plans.append(make_plan(crowd, belief, 25, most_each=2))
    assert plans[0] == plans[1] == plans[2] and len(plans[0]) == 25


@pytest.mark.parametrize("size", [2, 4])
def test_no_label_gains_more_than_the_bound(size: int) -> None:
    rng = np.random.default_rng(size)
    probas = rng.dirichlet(np.ones(size), 200)
    errors = rng.dirichlet(np.ones(size), (6, size)) * 0.4 + 0.6 * np.eye(size)
    gains = Answers.of(errors).values(probas)[0].max(axis=1)
    bounds = most_gain(probas, errors)
    assert (gains <= bounds + 1e-12).all()
    assert (bounds < 1.0 - probas.max(axis=1)).mean() > 0.9
    if size == 2:
        assert_allclose(gains, bounds, atol=1.5 / 64)


def test_a_cheap_annotator_goes_before_a_better_dear_one() -> None:
    belief = random_belief(40)
    crowd = Annotations(
        np.arange(40), np.full(40, 4), np.zeros(40, int), num_annotators=5, num_classes=3
    )
    costs = array_of("1.0 2.0 3.0 4.0 1.0")
    plan = make_plan(crowd, belief, 20, most_each=40, per_task=1, costs=costs)
    spent = costs[[one.annotator for one in plan]]
    assert 18 < spent.sum() <= 20
    # The first is the best of all pairs by gain per cost, information decides between equal ones.
    worth = [
        worths([belief.probas[i][None]], Answers.of(belief.errors))[0][0] / costs for i in range(40)
    ]
    assert np.array(worth)[:, :4].argmax() == plan[0].task * 4 + plan[0].annotator
    same = make_plan(crowd, belief, 20, most_each=40, per_task=1)
    gained = [sum(one.gain for one in each) for each in (plan, same)]
    assert gained[0] / spent.sum() > gained[1] / costs[[one.annotator for one in same]].sum()


def test_the_stopping_rule_leaves_out_small_gains() -> None:
    crowd = simulated(0, tasks=120, annotators=15, classes=3, each=3)
    belief = believe(crowd)
    every, few = (make_plan(crowd, belief, 60, least_gain=least) for least in (0.0, 0.1))
    gains = [one.gain for one in every]
    assert min(gains) < 0.1 <= min(one.gain for one in few)
    assert len(few) >= sum(gain >= 0.1 for gain in gains) > 0
    assert not make_plan(crowd, belief, 60, least_gain=1.0)


def test_belief_of_inferred_labels_by_hand() -> None:
    crowd, probas = crowd_of("00 01"), array_of("0.9 0.1; 0.4 0.6")
    # Labels are right with .9, .9, .4 and .6: .7 on average; 8 labels of that accuracy are added.
    belief = belief_of(crowd, probas)
    assert belief.accuracy == pytest.approx(0.7)
    expected = [(8 * 0.7 + 1.3) / 9.3, (8 * 0.3 + 0.7) / 8.7]
    assert_allclose(belief.errors[0, :, 0], expected)
    assert belief_of(crowd, probas, np.array([True, False])).accuracy == pytest.approx(0.65)


def test_models_are_not_asked_and_do_not_count_as_the_crowds_accuracy() -> None:
    crowd = crowd_of("000 000 010 101 111 111 010 101")
    people = np.array([True, True, False])
    first = crowd.to_dense()[:, 0]
    belief = belief_of(crowd, np.where(np.eye(2)[first] == 1, 0.8, 0.2), people)
    # The first person is right with .8, the second with .8 on four items and with .2 on four.
    assert belief.accuracy == pytest.approx((0.8 + 0.5) / 2)
    few = crowd.select(crowd.instances % 3 != crowd.annotators)
    plan = make_plan(few, belief, 8, most_each=8, free=people)
    assert plan and {request.annotator for request in plan} <= {0, 1}


def test_an_annotator_without_labels_is_one_of_the_crowds_average() -> None:
    truth = default_rng(2).integers(0, 3, 200)
    skills = np.full((12, 3), 0.7)
    skills[:3] = 1 / 3  # who guess
    crowd = simulate(truth, from_skills(skills), 2, rates=0.3)
    wider = crowd.with_annotators(["eve", *crowd.annotator_names.tolist()])
    assert wider.num_annotators == 13 and wider.annotator_names[12] == "eve"
    belief, before = believe(wider), believe(crowd)
    assert_allclose(belief.probas, before.probas)
    average = np.full((3, 3), (1 - belief.accuracy) / 2)
    np.fill_diagonal(average, belief.accuracy)
    assert_allclose(belief.errors[12], average)
    # Good ones come before eve, who comes before those who guess.
    free = np.isin(np.arange(13), [0, 1, 2, 12])
    plan = make_plan(wider, belief, 5, most_each=5, free=free)
    assert [request.annotator for request in plan] == [12] * 5
    free[5] = True
    assert make_plan(wider, belief, 1, most_each=5, free=free)[0].annotator == 5


# ----------------------------------------------------------------- command


def asked(table: str) -> set[str]:
    """The annotators of a written list."""
    return set(pd.read_csv(io.StringIO(table), dtype=str)["annotator"])


@pytest.fixture
def labels_csv(tmp_path: Path) -> Path:
    crowd = simulated(1, tasks=80, annotators=10, classes=3, each=3)
    path = tmp_path / "annotations.csv"
    crowd.to_frame().to_csv(path, index=False)
    return path


def test_the_same_split_of_votes_is_more_alike_in_all_classes() -> None:
    votes = array_of("2 1; 2 1; 1 2; 1 2; 3 0; 0 3")
    probas = array_of("0.9 0.1; 0.8 0.2; 0.4 0.6; 0.3 0.7; 0.99 0.01; 0 1")
    less = with_less_lean(probas, votes)
    logits = np.log(probas.max(axis=1) / probas.min(axis=1).clip(1e-9))
    mean = logits[:4].mean()
    by_split = 1 / (1 + np.exp(-(mean + 0.5 * (logits[0] - logits[:2].mean()))))
    expected = 0.25 * by_split + 0.75 * 0.9
    assert less[0] == pytest.approx([expected, 1 - expected])
    assert less[:2, 0].mean() < 0.85 and less[2:4, 1].mean() > 0.65
    assert (less.argmax(axis=1) == probas.argmax(axis=1)).all() and (less[5] == [0, 1]).all()


def test_the_list(labels_csv: Path, tmp_path: Path, cli) -> None:
    output = tmp_path / "relabel.csv"
    captured = cli("relabel", [f"--annotations={labels_csv}", "--budget=20", f"--output={output}"])
    assert captured.out == "" and "20 labels of" in captured.err
    result = pd.read_csv(output)
    assert list(result.columns) == ["task", "annotator", "priority", "gain", "reason"]
    assert result["priority"].tolist() == list(range(1, 21))
    assert (result["gain"] >= 0).all() and result["gain"][0] > 0.05
    assert result["reason"].str.contains(r"labels: .*; likely .*%.*; asked since right on").all()
    certain = pd.read_csv(labels_csv)
    both = result.merge(certain.rename(columns={"worker": "annotator"}), on=["task", "annotator"])
    assert not both.size
    first = output.read_bytes()
    assert cli("relabel", [f"--annotations={labels_csv}", "--budget=20"]).out.encode() == first


def test_the_labels_are_those_of_aggregate(labels_csv: Path, tmp_path: Path, cli) -> None:
    gold, labels = tmp_path / "gold.csv", tmp_path / "labels.csv"
    flags = [f"--annotations={labels_csv}", f"--gold={gold}"]
    rows = pd.read_csv(labels_csv).drop_duplicates("task").head(12)
    rows[["task", "label"]].to_csv(gold, index=False)
    text = " ".join(cli("aggregate", [*flags, f"--output={labels}"]).err.splitlines())
    captured = cli("relabel", [*flags, "--budget=40"])
    plan = pd.read_csv(io.StringIO(captured.out))
    likely = plan["reason"].str.extract("likely '(.*?)'")[0]
    inferred = pd.read_csv(labels).set_index("task")["label"]
    assert likely.tolist() == inferred[plan["task"]].astype(str).tolist()
    assert not set(plan["task"]) & set(rows["task"])
    accuracy = text.partition("accuracy of the labels: ")[2].partition(",")[0]
    assert f"expected accuracy of the consensus: {accuracy}" in captured.err
    assert "corrected per 100 labels: " in captured.err and "by the last 4." in captured.err


def test_costs(labels_csv: Path, tmp_path: Path, cli, monkeypatch: pytest.MonkeyPatch) -> None:
    names = sorted(set(pd.read_csv(labels_csv)["worker"]))
    costs = tmp_path / "costs.csv"
    frame = pd.DataFrame({"annotator": names, "cost": [0.5 + i % 3 for i in range(len(names))]})
    frame.to_csv(costs, index=False)
    flags = [f"--annotations={labels_csv}", "--budget=12", f"--cost={costs}"]
    captured = cli("relabel", flags)
    plan = pd.read_csv(io.StringIO(captured.out))
    assert plan["cost"].tolist() == frame.set_index("annotator")["cost"][plan["annotator"]].tolist()
    assert 11 <= plan["cost"].sum() <= 12 and f", cost {plan['cost'].sum():g}." in captured.err
    assert "corrected per 100 of cost" in captured.err and "No further label" not in captured.err
    # Half of them are dear: the default cap is a label each, and too little for the budget.
    frame["cost"] = [0.1 if i % 2 else 50.0 for i in range(len(names))]
    frame.to_csv(costs, index=False)
    flags[1] = "--budget=3"
    plan = pd.read_csv(io.StringIO(cli("relabel", flags).out))
    assert len(plan) == 30 and len(set(plan["annotator"])) > 3
    capped = cli("relabel", [*flags, "--most_each=1"])
    assert "No further label of the budget of 3 is useful or can be asked for." in capped.err
    monkeypatch.setattr("neucrowd_tf.cli.commands.relabel.infer", None)  # errors come before it
    for content, message in {
        "annotator,cost\n0,1\n": "annotators that can be asked have no cost, such as",
        "annotator,price\n0,1\n": "'cost'",
        "annotator,cost\n0,free\n": "Write a number above 0",
        "annotator,cost\n0,1\n0,2\n": "annotator '0' occurs twice",
    }.items():
        costs.write_text(content)
        assert message in cli("relabel", flags, 2).err


def test_a_flag_names_the_annotators_of_costs_too(tmp_path: Path, cli) -> None:
    labels = tmp_path / "a.csv"
    costs = tmp_path / "costs.csv"
    labels.write_text("task,who,label\na,u,x\na,v,y\nb,u,x\n")
    costs.write_text("who,cost\nu,1\nv,2\n")
    flags = [f"--annotations={labels}", "--worker_column=who", "--budget=2", f"--cost={costs}"]
    assert cli("relabel", flags).out.startswith("task,annotator,priority,gain,reason,cost")


def test_who_can_be_asked(labels_csv: Path, cli) -> None:
    first, second, *_ = sorted(map(str, set(pd.read_csv(labels_csv)["worker"])))
    flags = [f"--annotations={labels_csv}", "--budget=12", "--most_each=12"]
    captured = cli("relabel", [*flags, f"--ask=eve, {first}"])
    assert "eve" in asked(captured.out) <= {"eve", first}
    assert "without labels yet: 'eve'\n" in captured.err
    assert second not in asked(cli("relabel", [*flags, f"--model_annotator={second}"]).out)
    assert "no annotator is named 'eve'" in cli("relabel", [*flags, "--model_annotator=eve"], 2).err
    assert "annotators are models" in cli("relabel", [*flags, "--model_annotator=*"], 2).err


def test_a_models_probabilities(tmp_path: Path, cli) -> None:
    labels, model = tmp_path / "a.csv", tmp_path / "p.csv"
    rows = [f"{task},{worker},x" for task in "abcd" for worker in "uv"]
    rows += [f"{task},w,{label}" for task, label in zip("efgh", "xyyy", strict=True)]
    labels.write_text("task,worker,label\n" + "\n".join(rows) + "\n")
    model.write_text("task,p_y,p_x\nf,.2,.8\ne,.2525,.7575\nother,1,0\n")
    crowd = read_annotations(labels).annotations
    lines: list[str] = []
    result = read_probabilities(model, crowd, report=lines.append)
    # e: .7575 and .2525 add up to 1.01; f as it is; the others have the mean of the two.
    assert_allclose(result[4:6], array_of("0.75 0.25; 0.8 0.2"))
    assert_allclose(result[[0, 7]], [[0.775, 0.225]] * 2)
    assert lines == ["p.csv: 6 items are missing. They get the mean probabilities."]
    flags = [f"--annotations={labels}", "--budget=1", "--per_task=1"]
    output = cli("relabel", [*flags, f"--probabilities={model}"])
    assert lines[0] in output.err
    assert output.out.count("\n") == 2 and output.out != cli("relabel", flags).out
    for content, message in {
        "task,p_x\na,1\n": "there is no column 'p_y'",
        "task,p_x,p_y\na,1,z\n": "line 2: column 'p_x, p_y': '1, z' is not",
        "task,p_x,p_y\na,90,10\n": "line 2: p_x, p_y are 90, 10, not probabilities that sum to 1",
        "task,p_x,p_y\nz,1,0\n": "item 'z' is not one of",
    }.items():
        model.write_text(content)
        assert message in cli("relabel", [*flags, f"--probabilities={model}"], 2).err


def test_evidence_is_bayes_rule() -> None:
    # Votes two to one everywhere leave the classifier's temperature at what fits them; with its
    # probabilities all alike it says nothing.
    belief = random_belief(4)
    crowd = crowd_of("0- 1- 2- 01")
    flat = np.tile([0.2, 0.5, 0.3], (4, 1))
    assert_allclose(with_evidence(belief.probas, evidence_of(crowd, flat)), belief.probas)
    probas = default_rng(1).dirichlet(np.ones(3), 4)
    scaled = calibrated(probas, crowd.vote_counts().astype(float))
    expected = [
        [belief.probas[i, c] * scaled[i, c] / scaled[:, c].mean() for c in range(3)]
        for i in range(4)
    ]
    result = with_evidence(belief.probas, evidence_of(crowd, probas))
    assert_allclose(result, np.array(expected) / np.sum(expected, 1, keepdims=True))


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Path]:
    """Writes the folder of a run with these settings."""

    def written(**settings) -> Path:
        folder = tmp_path / "seed-0"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps({"settings": settings}))
        return folder

    return written


def test_a_runs_out_of_fold_predictions_are_used(labels_csv: Path, run, cli) -> None:
    folder = run(annotations=str(labels_csv))
    flags = [f"--run={folder}", "--budget=5"]
    without = cli("relabel", flags)
    tasks = sorted(set(pd.read_csv(labels_csv)["task"]))
    rows = [f"{task},{0.9 if task % 2 else 0.05},.05,{0.05 if task % 2 else 0.9}" for task in tasks]
    (folder / "oof.csv").write_text("task,p_0,p_1,p_2\n" + "\n".join(rows) + "\n")
    used = cli("relabel", flags)
    assert "oof.csv: the model's out-of-fold predictions are used." in used.err
    assert used.out != without.out and "80% intervals" in used.err
    for path in (folder / "oof.csv", folder / "config.json", labels_csv):
        assert "would overwrite --" in cli("relabel", [*flags, f"--output={path}"], 2).err


def test_nothing_to_ask(tmp_path: Path, cli) -> None:
    path = tmp_path / "a.csv"
    path.write_text("task,worker,label\n1,a,x\n1,b,y\n2,a,y\n2,b,y\n")
    assert "with --ask." in cli("relabel", [f"--annotations={path}", "--budget=3"]).err


def test_a_run_names_its_annotations(labels_csv: Path, run, cli) -> None:
    settings = {"annotations": str(labels_csv)}
    flags = [f"--run={run(**settings)}", "--budget=5"]
    model, *_ = asked(cli("relabel", flags).out)
    run(**settings, model_annotator=[model])
    assert model not in asked(cli("relabel", flags).out)
    run()
    assert "not a run with --dataset=table" in cli("relabel", flags, 2).err


def test_one_line_and_exit_code_2(labels_csv: Path, tmp_path: Path, cli) -> None:
    broken = label_studio(tmp_path)
    broken.write_text(broken.read_text()[:1500])
    votes = tmp_path / "votes.csv"
    votes.write_text("task,votes_x,votes_y\na,2,1\nb,0,3\n")
    for flags, message in {
        "--budget=3": "--annotations or --run: name one of them",
        f"--annotations={labels_csv}": "--budget",
        f"--annotations={labels_csv} --budget=0": "--budget=0: must be a whole number from 1",
        f"--annotations={broken} --budget=3": "[broken_file]",
        f"--annotations={votes} --budget=3": "relabel",
        f"--run={tmp_path / 'none'} --budget=3": "not a run with --dataset=table",
    }.items():
        captured = cli("relabel", flags.split(), 2)
        assert message in captured.err and captured.out == ""
