"""Spark's own ways past the lakes: to files, to Java, to other programs. A strict session has them closed.

Where Spark can close a door itself, its settings do (`spark.session`); here it is said which one it was, and closed
where Spark cannot.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokens import Token

from dbt.adapters.ducklake.lake import Lake, fold, plain
from dbt.adapters.ducklake.spark.session import CATALOGS, FILES, JAVA, JAVA_FUNCTIONS, PYTHON, SCRIPTS, SETTINGS
from dbt.adapters.ducklake.statements.errors import NotAllowed, Place
from dbt.adapters.ducklake.statements.reader import Reader, is_string, place_of
from dbt.adapters.ducklake.statements.session import LakeSession

_SAID = {
    FILES: "read or add files by their path",
    JAVA: "call Java, or functions of classes",
    SCRIPTS: "run a program over rows",
    SETTINGS: "change settings of Spark's",
    CATALOGS: "name what is in no lake of the profile",
    PYTHON: "run a Python model",
}
# What a strict session may SET: how a query is computed and what it means, not what it reaches.
_HARMLESS = frozenset(
    {"spark.sql.shuffle.partitions", "spark.sql.ansi.enabled", "spark.sql.session.timezone",
     "spark.sql.autobroadcastjointhreshold", "spark.sql.sources.partitionoverwritemode",
     "spark.sql.legacy.timeparserpolicy", "spark.sql.files.maxpartitionbytes", "spark.sql.adaptive.enabled",
     "spark.sql.adaptive.coalescepartitions.enabled", "spark.sql.adaptive.skewjoin.enabled"}
)  # fmt: skip


def refuse(session: LakeSession, door: str, place: Place | None = None) -> None:
    """NotAllowed where the door is closed."""
    if door in session.closed:
        raise NotAllowed(
            _SAID[door], "this target is `strict`", f"Who keeps the profile may allow it: strict_allows: [{door}].",
            place,
        )  # fmt: skip


def refuse_in_text(session: LakeSession, sql: str) -> None:
    """Refuse what stands in a statement, or in a view's query, if its door is closed."""
    if not session.closed:
        return
    for door, token in _seen(Reader(sql)):
        refuse(session, door, place_of(sql, token.start))


def _seen(reader: Reader) -> Iterator[tuple[str, Token]]:
    """What the text has of each door. A name is enough: whoever has a column of that name calls it otherwise."""
    for index, token in enumerate(reader.tokens):
        following = reader.tokens[index + 1] if index + 1 < len(reader.tokens) else None
        word = fold(token.text)
        if is_string(token):
            continue
        if word in JAVA_FUNCTIONS:
            yield JAVA, token
        if following is None:
            continue
        if word == "identifier" and following.text == "(":
            # What it names is not known before it runs.
            yield CATALOGS, token
        if word == "using" and is_string(following):
            yield SCRIPTS, token
        if word == "as" and is_string(following):
            yield JAVA, token


def words_in(sql: str) -> list[str]:
    return [token.text.upper() for token in Reader(sql).tokens if not is_string(token)]


def refuse_setting(session: LakeSession, key: str | None, place: Place | None = None) -> None:
    if key is None or fold(key) not in _HARMLESS:
        refuse(session, SETTINGS, place)


def refuse_files_outside(session: LakeSession, lake: Lake, paths: list[str], place: Place | None = None) -> None:
    """Files that are added must be the lake's own where the door is closed; never those of another tenant."""
    own, others = f"{plain(lake.own_path)}/", f"{plain(lake.data_path)}/"
    for path in map(plain, paths):
        if not path.startswith(own):
            refuse(session, FILES, place)
            if path.startswith(others) and lake.is_shared:
                raise NotAllowed(
                    "add files", "they lie beside this lake's own, where its metadata keep those of other tenants",
                    f"Copy them below {lake.own_path} first.", place,
                )  # fmt: skip
