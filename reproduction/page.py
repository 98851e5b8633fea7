"""Writes RESULTS.md, claims.csv and the claims of pages from the tables in `results/`.

Run `python -m reproduction.page results RESULTS.md`.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import re
import statistics
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

import baselines  # noqa: F401  (registers the rivals)
from neucrowd_tf.cli.runs.results import aligned
from neucrowd_tf.declare import registry
from neucrowd_tf.errors import DataError, one_line
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.files.json import read_json
from neucrowd_tf.io.files.json_text import write_json
from neucrowd_tf.io.tables.writing import to_csv
from reproduction import claims, forest, maps
from reproduction.catalogue import SUITES
from reproduction.claims import Claim
from reproduction.suite import Suite
from reproduction.verdicts import (
    ABOVE,
    AHEAD,
    BEHIND,
    BELOW,
    FEW_RUNS,
    NOT_TRAINED,
    TOO_WIDE,
    UNDECIDED,
    WITHIN,
)

TEMPLATE = Path(__file__).with_name("results_page.md")
# Places in the template and in pages of methods.
COUNTS = "<!-- counts -->"
ANSWER = "<!-- answer -->"
# A claim's figure in the template: {{name}} is its mean, {{name:published}} the published value;
# {{dasc_gain_:ahead}} is how many of the claims with names that begin so have a verdict,
# {{auto:digits:mv_lr}} the
# gain of `auto` over a method, {{consensus:mean}} that of `consensus` over majority vote.
_FIGURE = re.compile(r"\{\{(\w+)(?::(\w+))?(?::(\w+))?\}\}")
_PLACES = re.compile(
    r"(<!-- (claims|main claims|gains|no gains|maps) -->\n).*?(?=<!-- end of \2 -->)", re.DOTALL
)
PAPERS = {
    "neucrowd": "NeuCrowd",
    "rll": "RLL",
    "dasc": "DASC",
    "crowding": "CrowdInG",
    "iced": "ICED",
    "others": "Truth inference, later methods and datasets",
}
# How our value compares with a published one, in the order of the summary's columns.
PLACES = (ABOVE, WITHIN, BELOW, TOO_WIDE)
OWN = "the paper's method"
RIVALS = "rivals"
WORDS = (AHEAD, UNDECIDED, BEHIND)
JUDGED = (*WORDS, NOT_TRAINED, FEW_RUNS)
SETTINGS = {True: "published", False: "our"}
MAPS = Path("research/maps.md")
# What made each file: by suite, and of all others.
RUNS = "runs.json"
STUDIES = "studies.csv"
TOLERANCE = "tolerance.csv"
CLAIMS = "claims.csv"
FILES = "files.csv"
AUTO = "auto.csv"
CALIBRATION = "calibration.csv"
CARDS = "dataset_cards.csv"
TOLERANCE_NOTE = """\
A new run of a row agrees with the stored seed within its table's tolerance in accuracy: the largest
distance of the repeats in [tolerance.csv](tolerance.csv) (other threads, without oneDNN, other
machines) of any package that a method of the table is from; 0.0 if no repeat differed."""
Rows = list[dict[str, str]]
# What a page says without a row of gains, or of none.
NO_GAINS = {
    True: "No stored table shows a gain over a simpler method.",
    False: "Each stored comparison shows a gain.",
}


def read_rows(path: Path) -> Rows:
    """Returns the rows of a CSV."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rows_of(results: Path, suite: Suite) -> Rows:
    """Returns the rows of a suite's CSV; none without it, or if it is another kind of table."""
    path = results / f"{suite.name}.csv"
    if path.exists():
        rows = read_rows(path)
    else:
        rows = []
    if rows and {"published", "verdict", "metric"} <= set(rows[0]):
        return rows
    return []


def summary(tables: Iterable[tuple[Suite, Rows]]) -> list[str]:
    """Returns a table of how our values compare with those of each paper's own tables.

    Values of a paper's own method and those of its rivals are counted apart.
    """
    counts: dict[tuple[str, str], Counter[str]] = {}
    for suite, rows in tables:
        if suite.printed is not None:
            continue
        paper = _paper(suite)
        for row in rows:
            if row["published"]:
                if _is_own(paper, row["method"]):
                    whose = OWN
                else:
                    whose = RIVALS
                counts.setdefault((PAPERS[paper], whose), Counter())[row["verdict"]] += 1
    places = ", ".join(PLACES)
    table = [["paper", f"{OWN}: {places}", f"{RIVALS}: {places}"]]
    for paper in PAPERS.values():
        own = [counts.get((paper, OWN), Counter())[place] for place in PLACES]
        rivals = [counts.get((paper, RIVALS), Counter())[place] for place in PLACES]
        if any(own + rivals):
            table.append([paper, ", ".join(map(str, own)), ", ".join(map(str, rivals))])
    return aligned(table, "md", "")


def _is_own(paper: str, method: str) -> bool:
    """Returns whether a row of a paper's table is of its own method or of a variant of it."""
    name = method.rpartition("/")[2]
    return name.startswith((paper, "crowdg") if paper == "crowding" else paper)


def answer(rows: Iterable[Claim]) -> list[str]:
    """Returns, a line a paper, who is ahead in its main comparisons, and on which inputs."""
    lines = []
    for paper, main in _by_paper(row for row in rows if row.headline).items():
        gains = [claim for claim in main if claim.ours is not None and claim.controls]
        forms = []
        for published, name in SETTINGS.items():
            counts = Counter(_word(x) for x in gains if _near(x) == published)
            words = [f"{counts[word]} {word}" for word in JUDGED if counts[word]]
            forms += [f"{name} settings {', '.join(words)}"] * bool(words)
        names = ", ".join(dict.fromkeys(f"`{claim.data}`" for claim in gains))
        apart: dict[str, None] = {}
        for claim in gains:
            apart |= dict.fromkeys(part for part in claims.PARTS[:-1] if _apart(claim, part))
        if apart:
            inputs = f"not the paper's {' and '.join(apart)}"
        elif all(claim.data_word == claims.SAME for claim in gains):
            inputs = "the paper's data"
        else:
            inputs = "data similar to the paper's"
        line = f"- **{paper}**: {'; '.join(forms)}"
        lines.append(f"{line} ({names}; {inputs}).")
    return lines


def _near(claim: Claim) -> bool:
    """Returns whether a claim has the paper's settings as far as they are known."""
    return not _apart(claim, "settings")


def _apart(claim: Claim, part: str) -> bool:
    return claim.parts.get(part) == claims.OTHER


def by_settings(rows: Iterable[Claim]) -> list[str]:
    """Returns a table of who is ahead, for each paper with published settings and with ours."""
    table = [["paper", "settings", *WORDS, "no verdict"]]
    measured = [x for x in rows if x.ours is not None and x.controls and not x.choice]
    for paper, of_paper in _by_paper(measured).items():
        for published, name in SETTINGS.items():
            words = Counter(_word(claim) for claim in of_paper if _near(claim) == published)
            without = words.total() - sum(words[word] for word in WORDS)
            if words:
                counts = (str(words[word]) for word in WORDS)
                table.append([paper, name, *counts, str(without)])
    return aligned(table, "md", "")


def table_of(rows: Iterable[Claim]) -> list[str]:
    """Returns a table with a row per claim, the verdict first."""
    table = [["here", "claim", "published", "ours (seeds)", "inputs"]]
    for claim in rows:
        published, ours, seeds = claims.figures(claim)
        if seeds:
            ours += f" ({seeds})"
        text = f"{claim.claim} ({claim.where})"
        table.append([claim.verdict, text, published, ours, claim.comparability])
    filled = np.array(table, dtype=object)
    filled = filled[:, (filled[1:] != "").any(axis=0)]
    return aligned(filled.tolist(), "md", "")


def _word(claim: Claim) -> str:
    return claim.verdict.partition(",")[0]


def _by_paper(rows: Iterable[Claim]) -> dict[str, list[Claim]]:
    papers: dict[str, list[Claim]] = {}
    for claim in rows:
        papers.setdefault(claim.paper, []).append(claim)
    return {name: papers[name] for name in sorted(papers, key=[*PAPERS.values(), *papers].index)}


def _paper(suite: Suite) -> str:
    name = suite.name.partition("_")[0]
    if name in PAPERS:
        return name
    return "others"


def _wrapped(text: str) -> Iterator[str]:
    """Yields the lines of a text: paragraphs and items of lists in at most 100 characters."""
    for block in text.split("\n\n"):
        if block.startswith(("|", "#", "!", "<")):
            yield from block.splitlines()
        else:
            for part in re.split(r"\n(?=- )", block):
                indent = "  " * part.startswith("- ")
                line = " ".join(part.split())
                yield from textwrap.wrap(
                    line,
                    100,
                    subsequent_indent=indent,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
        yield ""


def _tables(results: Path) -> list[tuple[Suite, Rows]]:
    tables = [(suite, rows) for suite in SUITES if (rows := rows_of(results, suite))]
    if not tables:
        raise DataError(f"{results}: expected tables that --suite wrote, received none")
    return tables


def page(results: Path) -> str:
    """Returns RESULTS.md.

    Raises:
        DataError: a folder without tables.
    """
    tables = _tables(results)
    rows = claims.read()
    by_name = {claim.name: claim for claim in rows}

    def figure(match: re.Match[str]) -> str:
        if match[1] == "auto":
            return _gain_of_auto(claims.RESULTS, match[2], match[3])
        if match[1] == "consensus":
            return _gain_of_consensus(claims.RESULTS, match[2])
        if match[1].endswith("_"):
            members = [x for x in rows if x.name.startswith(match[1]) and x.controls]
            return f"{sum(_word(x) == match[2] for x in members)} of {len(members)}"
        claim = by_name[match[1]]
        if match[2] == "instances":
            return _instances(claims.RESULTS, claim)
        return _shown_figure(claim, match[2] or "")

    text = _FIGURE.sub(figure, TEMPLATE.read_text(encoding="utf-8"))
    generated = {ANSWER: by_settings(rows), COUNTS: summary(tables)}
    for mark, lines in generated.items():
        text = text.replace(mark, "\n".join(lines).strip())
    wrapped = "\n".join(_wrapped(text.strip())).strip()
    return f"# Do the papers reproduce, and what should I use?\n\n{wrapped}\n"


def _gain_of_auto(results: Path, dataset: str, method: str) -> str:
    """Returns the stored gain of `auto` over a method in points, with its interval."""
    for row in read_rows(results / AUTO):
        if (row["dataset"], row["method"], row["target"]) == (dataset, method, "as_trained"):
            numbers = re.findall(r"[-+]\d\.\d+", row["auto minus it"])
            mean, low, high = (f"{100 * float(number):+.1f}" for number in numbers)
            return f"{mean} [{low}, {high}]"
    raise DataError(f"{AUTO}: has no row of {method} on {dataset}")


def _gain_of_consensus(results: Path, statistic: str) -> str:
    """Returns a statistic of the gains of `consensus` over majority vote on full public crowds.

    Args:
        results: with the table of the calibration.
        statistic: "mean" or "median" in points, or "count".
    """
    gains = [
        100 * (float(row["true"]) - float(row["majority_vote"]))
        for row in read_rows(results / CALIBRATION)
        if row["thinned"] == "full"
    ]
    if statistic == "count":
        return str(len(gains))
    return f"{getattr(statistics, statistic)(gains):+.1f}"


def _instances(results: Path, claim: Claim) -> str:
    """Returns by how many of the test instances a value differs from the published one.

    Of a gain it is how many the published gain is.
    """
    if claim.ours is None or claim.ours.published is None:
        raise DataError(f"claims.toml: {claim.name}: has no published value")
    if claim.controls:
        difference = claim.ours.published
    else:
        difference = claim.ours.mean - claim.ours.published
    sizes = {
        row["dataset"].lower(): int(row["computed"])
        for row in read_rows(results / CARDS)
        if row["statistic"] == "test_size"
    }
    size = sizes[claim.data]
    return f"{abs(difference) * size:.0f} of {size}"


def _shown_figure(claim: Claim, part: str) -> str:
    """Returns a figure of a claim for the template, a gain in points.

    Args:
        claim: measured.
        part: "published", "interval", "verdict", "difference" (ours minus the published value, in
            points), "leads", "over", or "" for our mean.
    """
    ours = claim.ours
    if ours is None:
        raise DataError(f"claims.toml: {claim.name}: has no figure for {TEMPLATE.name}")
    if claim.controls:
        scale, sign, digits = (100.0, "+", 1)
    else:
        scale, sign, digits = (1.0, "", 3)

    def shown(value: float | None) -> str:
        if value is None:
            return ""
        return f"{scale * value:{sign}.{digits}f}"

    if part == "difference":
        return f"{100 * (ours.mean - (ours.published or 0.0)):+.1f}"
    texts = {
        "": shown(ours.mean),
        "published": shown(ours.published),
        "interval": f"{shown(ours.mean)} [{shown(ours.low)}, {shown(ours.high)}]",
        "verdict": _word(claim),
        "leads": ours.leads,
        "over": ours.over,
    }
    return texts[part]


def claims_csv(rows: Iterable[Claim]) -> str:
    """Returns every claim and choice as CSV: who is ahead, our figure, and conditions."""
    columns = ("paper", "kind", "here", "claim", "place", "published", "ours", "seeds", "inputs")
    table = []
    for claim in rows:
        kind = "choice" if claim.choice else "main" if claim.headline else "further"
        text = (claim.paper, kind, claim.verdict, claim.claim, claim.where)
        table.append((*text, *claims.figures(claim), claim.comparability, claim.note))
    return to_csv((*columns, "conditions"), table)


def gains_of(rows: Iterable[Claim], gained: bool) -> list[str]:
    """Returns the measured gains over simpler methods, or where none is shown.

    Args:
        rows: claims whose control is the simpler method.
        gained: which of the two.
    """
    if gained:
        head = ("use", "over")
    else:
        head = ("instead of", "use")
    table = [[*head, "data", "gain (seeds)"]]
    for claim in rows:
        word = _word(claim)
        if word in WORDS and (word == AHEAD) == gained and claim.ours is not None:
            simpler = claim.ours.over or claim.controls[0]
            names = [f"`{name.rpartition('/')[2]}`" for name in (claim.rows[0], simpler)]
            setting = claim.rows[0].rpartition("/")[0]
            _, gain, seeds = claims.figures(claim)
            data = f"`{claim.data}`" + f", {setting}" * bool(setting)
            table.append([*names, data, f"{gain.partition(' over')[0]} ({seeds})"])
    if len(table) > 1:
        return aligned(table, "md", "")
    return [NO_GAINS[gained]]


def filled(text: str, name: str) -> str:
    """Returns a page with its generated places filled: claims, gains and maps.

    Args:
        text: of the page.
        name: of the page in docs/methods/ or docs/papers/; a page of no paper has the claims and
            the maps of all.
    """
    rows = claims.read()
    advice = [claim for claim in rows if claim.advice == name]
    generated = {
        "main claims": table_of(x for x in rows if x.headline and PAPERS.get(name) == x.paper),
        "claims": answer(x for x in rows if PAPERS.get(name) in (None, x.paper)),
        "gains": gains_of(advice, True),
        "no gains": gains_of(advice, False),
        "maps": maps.sentences(claims.RESULTS, SUITES, PAPERS.get(name)),
    }
    return _PLACES.sub(lambda match: match[1] + "\n".join(generated[match[2]]) + "\n", text)


def files_csv(results: Path) -> str:
    """Returns a line for each file of results, with the question that it answers."""
    titles: Mapping[str, str] = {suite.name: suite.title for suite in SUITES}
    questions = {row["file"]: row["question"] for row in reversed(read_rows(results / STUDIES))}
    rows = []
    for path in sorted(results.glob("*.csv")):
        if not path.stem.endswith("_seeds") and path.name not in (STUDIES, "notes.csv", FILES):
            suite = max((x for x in titles if path.stem.startswith(x)), key=len, default="")
            if path.stem != suite:
                question = questions.get(path.name, "")
            else:
                question = ""
            question = (question or titles.get(suite, "")).partition(" (")[0]
            rows.append((path.name, question))
    return to_csv(("file", "question"), rows)


def readme(results: Path) -> str:
    """Returns results/README.md: what the files are, and how near a rerun should come."""
    lines = [
        "# Results as files",
        "",
        "Each CSV has a table or a figure, or the answer to a question;",
        f"[{FILES}]({FILES}) lists them. `<table>_seeds.csv` has a table's values by seed.",
        f"[{RUNS}]({RUNS}) has the command of each suite and the commits of its runs.",
        f"[{STUDIES}]({STUDIES}) has the command of every other file, and the commit that has the",
        "command if its script was removed. [notes.csv](notes.csv) has conditions and single",
        "figures of these files. Tables in long form have a row per cell.",
    ]
    if (results / TOLERANCE).exists():
        lines += ["", "## Tolerance", "", *textwrap.wrap(TOLERANCE_NOTE, 100), ""]
        lines += tolerances(results)
    return "\n".join(lines) + "\n"


def tolerances(results: Path) -> list[str]:
    """Returns a table of how far repeated runs of a suite's packages lie apart."""
    apart: dict[str, float] = {}
    for row in read_rows(results / TOLERANCE):
        points = 100 * int(row["instances_apart"]) / int(row["test_instances"])
        apart[_package(row["method"])] = max(points, apart.get(_package(row["method"]), 0.0))
    groups: dict[str, list[str]] = {}
    for suite in SUITES:
        methods = itertools.chain.from_iterable(case.methods for case in suite.cases)
        used = set(map(_package, methods))
        if used and rows_of(results, suite):
            if used & set(apart):
                words = [f"{max(apart[x] for x in used & set(apart)):.1f}"]
            else:
                words = []
            words += [f"`{name}` not measured" for name in sorted(used - set(apart))]
            groups.setdefault("; ".join(words), []).append(f"`{suite.name}`")
    rows = [[words, ", ".join(names)] for words, names in sorted(groups.items())]
    return aligned([["points", "tables"], *rows], "md", "")


def _package(method: str) -> str:
    """Returns the package of a row's method, as "neucrowd" below `neucrowd_tf.methods`."""
    module: str = registry.entry("method", method.rpartition("/")[2]).module
    return module.removeprefix("neucrowd_tf.methods.").partition(".")[0]


def collect_runs(results: Path) -> None:
    """Moves what a suite says of its runs, `<suite>.json`, into one file."""
    path = results / RUNS
    if single := [x for x in sorted(results.glob("*.json")) if x != path]:
        if path.exists():
            records = read_json(path)
        else:
            records = {}
        records |= {x.stem: read_json(x) for x in single}
        write_json(path, dict(sorted(records.items())))
        for record in single:
            record.unlink()


def main(results: Path, target: Path) -> None:
    """Writes the pages from the tables in `results`; `target` is RESULTS.md."""
    docs = target.parent / "docs"
    collect_runs(results)
    write_text(target, page(results) + maps.section(results, SUITES))
    forest.draw(claims.read(), results / "claims.png")
    write_text(results / "README.md", readme(results))
    write_text(results / CLAIMS, claims_csv(claims.read()))
    write_text(results / FILES, files_csv(results))
    for path in (
        target.parent / "README.md",
        *docs.glob("methods/*.md"),
        *docs.glob("papers/*.md"),
        docs / MAPS,
    ):
        if path.exists():
            write_text(path, filled(path.read_text(encoding="utf-8"), path.stem))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="folder of the tables")
    parser.add_argument("target", type=Path, help="RESULTS.md")
    try:
        main(**vars(parser.parse_args()))
    except (DataError, OSError) as error:
        sys.exit(f"error: {one_line(error)}")
