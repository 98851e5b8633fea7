"""Writes RESULTS.md, claims.csv and the claims of pages from the tables in `results/`.

Run `python -m reproduction.page results RESULTS.md`.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from neucrowd_tf.cli.runs.results import aligned
from neucrowd_tf.declare.picking import by_name, entries_of, having
from neucrowd_tf.errors import DataError, one_line
from neucrowd_tf.io.files.atomic import write_text
from neucrowd_tf.io.tables.writing import to_csv
from reproduction import forest, map_sentences
from reproduction.catalogue import SUITES
from reproduction.claim import OTHER, PARTS, RESULTS, SAME, Claim, figures, read, shown
from reproduction.results_folder import FILES, collect_runs, files_csv, readme
from reproduction.table import stored_table
from reproduction.verdicts import AHEAD, BEHIND, FEW_RUNS, NOT_TRAINED, UNDECIDED

TEMPLATE = Path(__file__).with_name("results_page.md")
# A claim's figure in the template: {{name}} is its mean, {{name:published}} the published value;
# {{dasc_gain_:ahead}} is how many of the claims with names that begin so have a verdict,
# {{auto:digits:mv_lr}} the gain of `auto` over a method, {{consensus:mean}} that of `consensus`
# over majority vote.
_FIGURE = re.compile(r"\{\{(\w+)(?::(\w+))?(?::(\w+))?\}\}")
_PLACES = re.compile(
    r"(<!-- (claims|main claims|minute|gains|no gains|maps) -->\n).*?(?=<!-- end of \2 -->)",
    re.DOTALL,
)
PAPERS = {
    "neucrowd": "NeuCrowd",
    "rll": "RLL",
    "dasc": "DASC",
    "crowding": "CrowdInG",
    "iced": "ICED",
    "others": "Truth inference, later methods and datasets",
}
WORDS = (AHEAD, UNDECIDED, BEHIND)
JUDGED = (*WORDS, NOT_TRAINED, FEW_RUNS)
SETTINGS = {True: "similar", False: "our"}
MAPS = Path("research/maps.md")
CLAIMS = "claims.csv"
AUTO = "auto.csv"
CALIBRATION = "calibration.csv"
CARDS = "dataset_cards.csv"
# What a page says without a row of gains, or of none.
NO_GAINS = {
    True: "None of the compared pairs shows a gain.",
    False: "Each of the compared pairs shows a gain.",
}


def answer(claims: Iterable[Claim]) -> list[str]:
    """Returns, a line a paper, who is ahead in its main comparisons, and on which inputs."""
    lines = []
    for paper, main in _by_paper(having(claims, headline=True)).items():
        gains = having(main, is_gain=True)
        forms = []
        for published, name in SETTINGS.items():
            counts = Counter(claim.word for claim in gains if _near(claim) == published)
            words = [f"{counts[word]} {word}" for word in JUDGED if counts[word]]
            forms += [f"{name} settings {', '.join(words)}"] * bool(words)
        names = ", ".join(dict.fromkeys(f"`{claim.data}`" for claim in gains))
        apart: dict[str, None] = {}
        for claim in gains:
            apart |= dict.fromkeys(x for x in PARTS[:-1] if claim.parts.get(x) == OTHER)
        inputs = "data similar to the paper's"
        if apart:
            inputs = f"not the paper's {' and '.join(apart)}"
        elif not gains or {claim.data_word for claim in gains} == {SAME}:
            inputs = "the paper's data"
        elif having(gains, data_word=SAME):
            inputs = "the paper's data, or similar"
        line = f"- **{paper}**: {'; '.join(forms)}"
        lines.append(f"{line} ({names}; {inputs}).")
    return lines


def _near(claim: Claim) -> bool:
    """Whether a claim has the paper's settings as far as they are known."""
    return claim.parts.get("settings") != OTHER


def table_of(claims: Iterable[Claim]) -> list[str]:
    """Returns a table with a row per claim, the verdict first, without columns that are empty."""
    table = pd.DataFrame(columns=["here", "claim", "published", "ours (seeds)", "inputs"])
    for claim in claims:
        published, ours, seeds = figures(claim)
        text = f"{claim.claim} ({claim.where})"
        ours += f" ({seeds})" * bool(seeds)
        table.loc[len(table)] = [claim.verdict, text, published, ours, claim.comparability]
    used = table.loc[:, (table != "").any()]
    return aligned([[*used], *used.to_numpy().tolist()], "md", "")


def _by_paper(claims: Iterable[Claim]) -> dict[str, list[Claim]]:
    papers: dict[str, list[Claim]] = {paper: [] for paper in PAPERS.values()}
    for claim in claims:
        papers.setdefault(claim.paper, []).append(claim)
    return entries_of(papers, filter(papers.get, papers))


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


def page(results: Path) -> str:
    """Returns RESULTS.md.

    Raises:
        DataError: a folder without tables.
    """
    stored = (len(stored_table(results / f"{suite.name}.csv")) for suite in SUITES)
    if not any(stored):
        raise DataError(f"{results}: expected tables that --suite wrote, received none")
    text = "\n".join(_wrapped(_with_figures(TEMPLATE.read_text(encoding="utf-8"), read())))
    maps = map_sentences.section(results, SUITES)
    return f"# Do the papers reproduce, and what should I use?\n\n{text.strip()}\n{maps}"


def minute(claims: Sequence[Claim]) -> list[str]:
    """Returns the answer in one minute, with which RESULTS.md begins: a line for each paper."""
    text = TEMPLATE.read_text(encoding="utf-8").partition("\n\n")[0]
    return "\n".join(_wrapped(_with_figures(text, claims))).splitlines()


def _with_figures(text: str, claims: Sequence[Claim]) -> str:
    """Returns a part of the template with its figures."""
    named = by_name(claims)

    def figure(match: re.Match[str]) -> str:
        name, part, method = match.groups(default="")
        if name == "auto":
            return _gain_of_auto(part, method)
        if name == "consensus":
            return _gain_of_consensus(part)
        if name.endswith("_"):
            words = [x.word for x in claims if x.name.startswith(name) and x.controls]
            return f"{words.count(part)} of {len(words)}"
        return _shown_figure(named[name], part)

    return _FIGURE.sub(figure, text).strip()


def _gain_of_auto(dataset: str, method: str) -> str:
    """Returns the stored gain of `auto` over a method in points, with its interval."""
    table = pd.read_csv(RESULTS / AUTO).set_index(["dataset", "method", "target"])
    if (dataset, method, "as_trained") not in table.index:
        raise DataError(f"{AUTO}: has no row of {method} on {dataset}")
    text = table.loc[(dataset, method, "as_trained"), "auto minus it"]
    numbers = re.findall(r"[-+]\d\.\d+", str(text))
    mean, low, high = 100 * np.array(numbers, dtype=float)
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def _gain_of_consensus(statistic: str) -> str:
    """Returns a statistic of the gains of `consensus` over majority vote on full public crowds.

    Args:
        statistic: "mean" or "median" in points, or "count".
    """
    table = pd.read_csv(RESULTS / CALIBRATION).query("thinned == 'full'")
    gains = 100 * (table["true"] - table["majority_vote"])
    if statistic == "count":
        return str(len(gains))
    return f"{gains.agg(statistic):+.1f}"


def _shown_figure(claim: Claim, part: str) -> str:
    """Returns a figure of a claim for the template, a gain in points.

    Args:
        claim: measured.
        part: "published", "interval", "verdict", "difference" (ours minus the published value, in
            points), "instances" (that, or a published gain, in test instances), "leads", "over",
            or "" for our mean.
    """
    ours = claim.ours
    if ours is None:
        raise DataError(f"claims.toml: {claim.name}: has no figure for {TEMPLATE.name}")
    difference = ours.mean - (ours.published or 0.0)
    if part == "instances":
        if claim.controls:
            difference = ours.published or 0.0
        cards = pd.read_csv(RESULTS / CARDS).query("statistic == 'test_size'")
        size = cards.loc[cards["dataset"].str.lower() == claim.data, "computed"].astype(int).item()
        return f"{abs(difference) * size:.0f} of {size}"
    mean = shown(claim, ours.mean)
    seeds_only = " (seeds only)" * ours.seeds_only
    texts = {
        "": mean,
        "published": shown(claim, ours.published),
        "interval": f"{mean} [{shown(claim, ours.low)}, {shown(claim, ours.high)}]{seeds_only}",
        "verdict": claim.word,
        "difference": f"{100 * difference:+.1f}",
        "leads": ours.leads,
        "over": ours.over,
    }
    return texts[part]


def claims_csv(claims: Iterable[Claim]) -> str:
    """Returns every claim and choice as CSV: who is ahead, our figure, and conditions."""
    columns = ("paper", "kind", "here", "claim", "place", "published", "ours", "seeds", "inputs")
    table = []
    for claim in claims:
        kind = "further"
        if claim.choice:
            kind = "choice"
        elif claim.headline:
            kind = "main"
        text = (claim.paper, kind, claim.verdict, claim.claim, claim.where)
        table.append((*text, *figures(claim), claim.comparability, claim.note))
    return to_csv((*columns, "conditions"), table)


def gains_of(claims: Iterable[Claim], gained: bool) -> list[str]:
    """Returns the measured gains over simpler methods, or where none is shown.

    Args:
        claims: whose control is the simpler method.
        gained: which of the two.
    """
    head = ("instead of", "use")
    if gained:
        head = ("use", "over")
    table = [[*head, "data", "gain (seeds)"]]
    for claim in claims:
        fits = claim.word in WORDS and (claim.word == AHEAD) == gained
        if fits and claim.ours is not None:
            simpler = claim.ours.over or claim.controls[0]
            names = [f"`{name.rpartition('/')[2]}`" for name in (claim.rows[0], simpler)]
            setting = claim.rows[0].rpartition("/")[0]
            _, gain, seeds = figures(claim)
            data = f"`{claim.data}`" + f", {setting}" * bool(setting)
            table.append([*names, data, f"{gain.partition(' over')[0]} ({seeds})"])
    if len(table) > 1:
        return aligned(table, "md", "")
    return [NO_GAINS[gained]]


def filled(text: str, name: str) -> str:
    """Returns a page with its generated places filled: the answer, claims, gains and maps.

    Args:
        text: of the page.
        name: of the page in docs/methods/ or docs/papers/; a page of no paper has the answer in
            one minute and the maps of all.
    """
    claims = read()
    paper = PAPERS.get(name)
    advice = having(claims, advice=name)
    generated = {
        "main claims": table_of(having(claims, headline=True, paper=paper)),
        "minute": minute(claims),
        "claims": answer(having(claims, paper=paper)),
        "gains": gains_of(advice, True),
        "no gains": gains_of(advice, False),
        "maps": map_sentences.sentences(RESULTS, SUITES, paper),
    }
    return _PLACES.sub(lambda match: match[1] + "\n".join(generated[match[2]]) + "\n", text)


def main(results: Path, target: Path) -> None:
    """Writes the pages from the tables in `results`; `target` is RESULTS.md."""
    docs = target.parent / "docs"
    collect_runs(results)
    write_text(target, page(results))
    forest.draw(read(), results / "claims.png")
    write_text(results / "README.md", readme(results))
    write_text(results / CLAIMS, claims_csv(read()))
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
