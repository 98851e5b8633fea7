"""Names that often stand for none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from neucrowd_tf.io.names.ids import as_list
from neucrowd_tf.io.names.shell import flag
from neucrowd_tf.io.names.spelling import LONGEST, is_plain_id, looks, plain

# How tables say that there is no value, in lower case: an empty cell, what spreadsheets show for an
# error, MySQL (\n), SPSS ($null$), pivot tables ((leer), (vide)), the empty set.
MARKERS = frozenset(
    ("", "#div/0!", "#n/a", "#n/a n/a", "#name?", "#null", "#null!", "#num!", "#ref!", "#value!",
     "$null$", "&nbsp", "&nbsp;", "(blank)", "(en blanco)", "(leer)", "(null)", "(vac\xedo)",
     "(vide)", "(vuoto)", "*", "+nan", "-", "--", "-nan", "-nan(ind)", ".", "..", "...", "/",
     "<na>", "<null>", "?", "[null]", "\\n", "dbnull", "empty string", "k.a", "keine angabe",
     "missing", "n a", "n.a", "n/a", "n/d", "na", "na character", "na integer", "na real", "nan",
     "nan(ind)", "nat", "nil", "no annotation", "no answer", "no data", "no label", "no response",
     "no value", "nodata", "non response", "none", "none given", "nonetype", "nonresponse",
     "not annotated", "np.nan", "pd.na", "pd.nat",
     "not answered", "not applicable", "not asked", "not available", "not given", "not labeled",
     "not labelled", "not provided", "not recorded", "not set", "not specified", "null",
     "null,null", "object object", "s/o", "system.dbnull", "unannotated", "unanswered",
     "undefined", "undefined value", "unlabeled", "unlabelled", "unset", "unspecified", "\u2205")
)  # fmt: skip
# What may be a class of its own too, as pictures are empty.
SOFT = frozenset(
    ("blank", "empty", "error", "failed", "ignore", "ignored", "invalid", "n.d", "nill", "nul",
     "pending", "refused", "skip", "skipped", "tbd", "timeout", "todo", "unknown", "unrated",
     "void", "xx", "xxx")
)  # fmt: skip
# Nothing but signs; what C prints for no number.
_NOTHING = re.compile(
    r"[-_.?/\\~^#!$%@|\u00b7\u3002\u30fb]+|\\0|[-+]?1\.#(ind|qnan|snan|inf)"
    # What spreadsheets of any language show for an error: #WERT!, #\u00a1REF!, #NV, #N/D, #I/T.
    r"|#[\u00a1\u00bf]?[^\W\d_]+(/0)?[!?]|#nv|#nd|#[^\W\d_]{1,4}/[^\W\d_]"
)
_AROUND = re.compile(r"^[\W_]+|[\W_]+$")
_NEGATIVE = re.compile(r"- ?\d+([.,]0*)?(e\+?0+)?")
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">", "'": "'", '"': '"', "`": "`"}


def is_marker(name: Any) -> bool:
    """Whether a name often stands for a missing one."""
    if not isinstance(name, str) or len(name) > LONGEST or is_plain_id(name):
        return False
    text = whole = plain(name)
    while len(text) > 1 + text.startswith("<") and _PAIRS.get(text[0]) == text[-1]:
        text = text[1:-1].strip()
    text = text.rstrip(",;:").partition("::")[0]  # a database's cast
    bare = _AROUND.sub("", text)
    if len(bare) > 1 and bare.isalpha() and bare in MARKERS:  # *NULL*, -NA-, NA!
        return True
    if not name.isascii() and (latin := looks(name)) != whole and latin in MARKERS:
        return True
    return (
        bool(MARKERS & {whole, text, text.rstrip("."), text.replace("_", " ").strip()})
        or text.replace("-", " ") in MARKERS
        or text.replace(" ", "").replace("\\", "/").rstrip(".") in MARKERS
        or _NOTHING.fullmatch(text) is not None
    )


def is_negative(text: str) -> bool:
    """Whether a text is a negative whole number, of which -1, -9 ... often stand for none."""
    return _NEGATIVE.fullmatch(text) is not None


def nothing_is_missing(missing: Sequence[str] | None) -> bool:
    """Whether the user says that no text stands for none, as the empty --missing= does; where the
    flag names some, others may stand for none too.
    """
    return missing is not None and len(missing) < 2 and not any(missing)


def missing_flag(missing: Sequence[str] | None, name: str) -> str:
    """Returns the flag by which a text too is none, beside those that it names already, as a shell
    takes it.
    """
    texts = [*(missing or ()), name.strip()]
    named = [text for text in texts if text]
    return flag("missing", as_list(named) + "," * (len(named) < len(texts)))
