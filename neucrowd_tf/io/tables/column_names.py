"""Names of columns that are no annotator's (counts, means, times, ids, true labels), and of rows
that are no task's (sums).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from neucrowd_tf.io.tables.headers import ALIASES

# Columns of a table that a true label, or what many labels come to, stands in.
_TRUTH = re.compile(
    r"(gold|truth|target|majority|consensus|final|correct|y[-_\s]?true|ground[-_\s]?truth|reference"
    r"|gold[-_\s]?standard|adjudicated|adjudication"
    r"|(gold|true|majority|final|correct)[-_\s]?(label|class|answer|vote)"
    r"|(label|class)[-_\s]true|gt[-_\s]label|label[-_\s]gt"
    r"|(is|true|truth|gold)[-_\s]?(gold|truth|labels?|class|target))",
    re.IGNORECASE,
)
_LABELS = "labels?|votes?|annotat(or|ion)s?|workers?|raters?|answers?|ratings?|judge?ments?"
_MIDDLE = (
    "means?|average|avg|median|mode|std|stdev|stddev|std_dev|sd|variance|entropy|agreement|kappa"
    "|confidence|conf|certainty|percent|percentage|prob|probability|score"
)
_UNIT = "seconds|secs|minutes|hours"
_TIMES = f"time|date|datetime|timestamp|duration|elapsed|{_UNIT}|age|year|month"
_SAME = "label|class|answer|vote|response"
AN_ID = "an id"
# What a column is named as: of names as `bare` gives them.
KINDS = {
    what: re.compile(pattern)
    for what, pattern in {
        "a count": rf"(n|nr|num|number|count|total|sum)_(of_)?({_LABELS})|({_LABELS})_(num|counts?"
        r"|totals?|sum)|counts?|((grand|sub)_?)?totals?|sums?|frequency|freq|n",
        "a mean or the like": rf"({_MIDDLE})(_({_LABELS}))?|({_LABELS}|inter_annotator)_"
        rf"({_MIDDLE})",
        "a time": rf"({_TIMES})(_(at|on|spent|taken|utc|s|sec|ms|{_UNIT}))?"
        rf"|(created|updated|submitted)(_(at|on))?"
        rf"|(start|end|work|response|reaction|submit|annotation|labell?ing)_({_TIMES})",
        "a part of the data": "(batch|fold|split|partition)(_(id|index|idx|nr|num|number))?",
        AN_ID: r"id|index|idx|row|uuid|task|item|instance|question|(row|item|index|task|image"
        r"|sample|instance|record|question|hit|job|user)_(id|index|idx|nr|num|number)",
        "a field of the task": "difficulty|is_hard|lang|language|length|words|source|category"
        "|status|group|topic|domain",
        "a true label": rf"gt|y|golden|oracle|answer_key|maj|dawid_skene|agreed|merged|combined"
        rf"|outcome|verdict|decision|(right|real|target)_({_SAME})|resolved|expected|solution"
        rf"|actual|votes?|aggregated|(is|was)_(true|correct|gold)"
        rf"|(mode|expected|actual|resolved|aggregated|consensus|gt)_({_SAME})"
        rf"|({_SAME})_(gold|truth|gt|final|majority|correct|mode|consensus|expected)",
    }.items()
}
_MODEL = re.compile(
    rf"model|llm|(chat_?)?gpt_?\w*|bert|preds?|predicted|predictions?"
    rf"|(pred|predicted|model)_({_SAME})|({_SAME}|y)_(pred|predicted|prediction|model|hat)"
)
# What may tell the label where it is a feature, beside what is refused there.
_LEAKS = re.compile(r"outcome|diagnosis|(p|prob|proba|probability)_\w+|vote_share\w*")
# Who gave labels, as the column of annotators is called beside those of items.
_PEOPLE = re.compile(
    r"(rater|coder|observer|judge|grader|reviewer|label+er|assessor|evaluator|respondent"
    r"|participant|subject|user|person|student|expert|worker|annotator)(_(id|nr|no|num|number))?"
)
_SUMS = re.compile(
    rf"((grand|sub|in|row|column|col)_?)?totals?|totale[ns]?|totaux|totaal|sums?|counts?|means?"
    rf"|average|avg|median|mode|majority|consensus|variance|var|stds?|stdev|std_?dev|sd|min|max|n"
    rf"|standard_deviation|all|overall|summary|((fleiss|cohens?|krippendorffs?)_)?(kappa|alpha)"
    rf"|percent|agreement|summen?|gesamt|insgesamt|mittelwert|durchschnitt|anzahl|mehrheit|somme"
    rf"|moyenne|suma|promedio|итого|всего|合计|总计|合計|平均|σ|ø"
    rf"|((number|num|nr|no|total|sum)_of|total|sum)_({_LABELS}|tasks?|items?)"
    rf"|(average|mean|avg|total|sum)_(rating|score|label|vote|count)s?"
)
_TOTALS = re.compile(r"((grand|sub)_?)?totals?|sums?|counts?|means?|avg|average")
# What counts a class's votes where numbers stand below.
ANSWERS = frozenset(
    ("yes", "no", "true", "false", "maybe", "unsure", "positive", "negative", "neutral", "pos",
     "neg")
)  # fmt: skip
_SHORT = 2  # letters, which may be an annotator's or a task's where others have as many
_SPLITS = (
    (re.compile(r"([^\W\d_]+)[\s_.-]*(\d+)"), 1, 2),
    (re.compile(r"([^\W_]+)[\s_.-]+(.+)"), 1, 2),
    (re.compile(r"(.+)[\s_.-]+([^\W_]+)"), 2, 1),
)
_SAYS = frozenset({*map(str.lower, ALIASES["label"]), "vote", "rating", "annotation", "choice"})


def bare(name: str) -> str:
    """Returns a name's words in small letters, joined by `_`."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[\W_]+", "_", words).strip("_").casefold()


def _one_of(name: str, others: Sequence[str]) -> bool:
    """Whether others are named alike: short names of as many letters of the same case, or the name
    with a number.
    """
    numbered = {re.sub(r"_?\d+$", "", bare(other)) for other in others if other[-1:].isdigit()}
    return bare(name) in numbered or (
        len(name) <= _SHORT and any(_shape(name) == _shape(other) for other in others)
    )


def _shape(name: str) -> str:
    return "".join("A" if c.isupper() else "0" if c.isdigit() else "a" for c in name)


def is_truth(column: str) -> bool:
    """Whether a column is named as a true label, or what many labels come to."""
    return _TRUTH.fullmatch(column.strip()) is not None


def may_leak(name: str) -> bool:
    """Whether a column of features is named as what may tell the label, as outcomes are."""
    words = bare(name)
    truth = KINDS["a true label"].fullmatch(words) is not None and words != "y"
    return truth or is_model(name) or _LEAKS.fullmatch(words) is not None


def no_annotator(name: str, columns: Sequence[str]) -> str:
    """Returns what a column among others is named as where that is no annotator; "" else."""
    if is_truth(name):
        return "a true label"
    if len(columns) == 1:
        return ""
    kind = next((what for what, names in KINDS.items() if names.fullmatch(bare(name))), "")
    return "" if kind and _one_of(name, [c for c in columns if c != name]) else kind


def is_model(name: str) -> bool:
    """Whether a column is named as what a model predicts."""
    return _MODEL.fullmatch(bare(name)) is not None


def is_people(name: str) -> bool:
    """Whether a column is named as one that holds who gave the row's labels."""
    return _PEOPLE.fullmatch(bare(name)) is not None


def is_sums(name: str, others: Sequence[str] = ()) -> bool:
    """Whether a row among others, or a class, is named as sums or means of the others are."""
    return _SUMS.fullmatch(bare(name)) is not None and not (
        bare(name) in ("n", "all", "sd") and _one_of(name, others)
    )


def is_totals(name: str) -> bool:
    """Whether a column of counts is named as nothing but what the others come to."""
    return _TOTALS.fullmatch(bare(name)) is not None


def is_task_header(name: str, others: Sequence[str]) -> bool:
    """Whether a row among others is named as the column of tasks is in a header."""
    aliases = {alias.lower() for alias in ALIASES["task"]}
    return name.strip().lower() in aliases and _shape(name) not in map(_shape, others)


def of_one_annotator(names: Sequence[str]) -> tuple[str, str] | None:
    """Returns two columns that say two things of one label: `worker1` and `label1`, `label_anna`
    and `time_anna`, `anna` and `anna_time`, `anna_sure` beside `ben` and `ben_sure`, `anna_q1` and
    `anna_q2` beside ben's; None where each may be an annotator's.
    """
    small = {name.lower(): name for name in names}
    for pattern, stem, rest in _SPLITS:
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for name in names:
            if parts := pattern.fullmatch(name):
                found[parts[rest].lower()][parts[stem].lower()] = name
        pairs = []
        for whose, named in found.items():
            label = next((named[word] for word in named if word in _SAYS), None)
            label = small.get(whose) if label is None else label
            for word, name in named.items():
                known = len(word) > 2 and word not in _SAYS and no_annotator(word, ()) != ""
                if label is not None and known:
                    return label, name
                if label is not None and word not in _SAYS:
                    pairs.append((label, name, word if label not in named.values() else ""))
        often = Counter(word for *_, word in pairs)
        for label, name, word in pairs:
            if often[word] > 1:
                return label, name
        if _is_grid(list(found.values()), len(names)):
            return names[0], names[1]
    return None


def _is_grid(groups: list[dict[str, str]], size: int) -> bool:
    """Whether columns are several groups that all have the same words, as those of annotators and
    questions do; numbers alone are no questions, nor are people (`rater`, `expert`).
    """
    words = set(groups[0]) if len(groups) > 1 else set()
    whole = all(set(group) == words for group in groups) and len(words) * len(groups) == size
    return whole and len(words) > 1 and not all(w.isdigit() or is_people(w) for w in words)


def renamed_twin(names: Sequence[str]) -> str | None:
    """Returns a column that pandas renamed, as it was there twice (`anna`, `anna.1`)."""
    known = set(names)
    twins = (name for name in names if re.fullmatch(r".+\.[1-9]\d*", name))
    return next((name for name in twins if name.rpartition(".")[0] in known), None)
