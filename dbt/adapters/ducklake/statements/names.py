"""Find the names of tables in a query and return its text with other names in their places.

The rest of the text is not rewritten: Spark evaluates it letter for letter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from dbt.adapters.ducklake.lake import fold
from dbt.adapters.ducklake.spark.schema import quoted
from dbt.adapters.ducklake.statements.errors import NotUnderstood, Place
from dbt.adapters.ducklake.statements.qualifiers import qualified
from dbt.adapters.ducklake.statements.reader import Name, Reader, is_quoted, place_of, syntax_tree
from dbt.adapters.ducklake.statements.scopes import Located

# What may follow a table's name before its alias.
_TIME_TRAVEL: tuple[tuple[str, ...], ...] = (
    ("VERSION", "AS", "OF"),
    ("SYSTEM_VERSION", "AS", "OF"),
    ("TIMESTAMP", "AS", "OF"),
    ("SYSTEM_TIME", "AS", "OF"),
)
_BEFORE_TABLE = frozenset({"FROM", "JOIN", "TABLE"})


@dataclass(frozen=True)
class Travel:
    """`VERSION AS OF` or `TIMESTAMP AS OF`, and the expression after it."""

    is_version: bool
    expression: str


@dataclass(frozen=True)
class TableUse:
    """A table, view or table function that a query names. `start` to `end` is the text that is replaced."""

    name: Name
    start: int
    end: int
    # Where an alias has to go if the query gives none, so that its columns can still be named by the table.
    alias_at: int | None
    travel: Travel | None = None
    arguments: str | None = None

    @property
    def own_name(self) -> str:
        return self.name.parts[-1]


@dataclass(frozen=True)
class QueryNames:
    """`parsed` is the syntax tree of the query; None if it could only be read word by word, so that names may have been
    missed."""

    tables: tuple[TableUse, ...]
    parsed: exp.Expr | None = None

    @property
    def is_certain(self) -> bool:
        return self.parsed is not None


def names_in(sql: str) -> QueryNames:
    """The tables that a query reads, CTEs excepted."""
    reader = Reader(sql)
    try:
        parsed = syntax_tree(sql)
    except (SqlglotError, RecursionError):
        by_start = {use.start: use for use in (*_by_tokens(reader), *_function_uses(reader))}
        return QueryNames(tuple(by_start[start] for start in sorted(by_start)))
    if parsed is None:
        raise NotUnderstood("An empty query", "Write a SELECT.")
    starts = {token.start: index for index, token in enumerate(reader.tokens)}
    found: dict[int, TableUse] = {}
    for table in parsed.find_all(exp.Table):
        use = _table_use(reader, starts, table)
        if use is not None:
            found.setdefault(use.start, use)
    for use in (*_after_table_keyword(reader), *_function_uses(reader)):
        found.setdefault(use.start, use)
    return QueryNames(tuple(found[start] for start in sorted(found)), parsed)


def replaced(sql: str, names: QueryNames, views: Mapping[int, str], tables: Mapping[int, Located]) -> str:
    """Return the query's text with the view's name in place of each table's.

    `views` and `tables` are by the start of the use. A table without an alias gets one, so that its columns can still
    be named by the table.
    """
    edits: list[tuple[int, int, str]] = []
    own_names = {use.start: use.own_name for use in names.tables if use.start in views and use.alias_at is not None}
    aliases, qualifiers = qualified(sql, names.parsed, own_names, tables)
    for use in names.tables:
        if use.start in views:
            edits.append((use.start, use.end, views[use.start]))
        if use.start in aliases:
            assert use.alias_at is not None
            edits.append((use.alias_at, use.alias_at, f" AS {quoted(aliases[use.start])}"))
    for start, end, text in sorted([*edits, *qualifiers], reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql


def _table_use(reader: Reader, starts: Mapping[int, int], table: exp.Table) -> TableUse | None:
    if isinstance(table.this, exp.Func):
        return None
    identifiers = [part for part in table.parts if isinstance(part, exp.Identifier)]
    if not identifiers or any("start" not in part.meta for part in identifiers):
        return None
    first = starts.get(min(part.meta["start"] for part in identifiers))
    if first is None or _is_cte(table):
        return None
    # sqlglot gives the tables of its own making the place of what they stand for.
    if fold(identifiers[-1].this) != fold(reader.tokens[starts[identifiers[-1].meta["start"]]].text):
        return None
    # `TABLE t` within a query, which sqlglot takes for a table with an alias.
    if reader.tokens[first].text.upper() == "TABLE" and not is_quoted(reader.tokens[first]):
        return None
    return _use_at(reader, first, has_alias=bool(table.alias))


def _use_at(reader: Reader, first: int, has_alias: bool | None = None) -> TableUse:
    """The use of a table whose name begins at a token; `has_alias` None: look."""
    reader.at = first
    name = reader.name()
    start, end = reader.tokens[first].start, reader.tokens[reader.at - 1].end + 1
    travel = _travel(reader)
    end = reader.tokens[reader.at - 1].end + 1 if travel else end
    _skip_sample(reader)
    alias_at = reader.tokens[reader.at - 1].end + 1
    if has_alias is None:
        has_alias = _sees_alias(reader)
    return TableUse(name, start, end, None if has_alias else alias_at, travel)


def _function_uses(reader: Reader) -> Iterator[TableUse]:
    """The table functions of DuckLake's own, and `read_files`."""
    for index, token in enumerate(reader.tokens[:-1]):
        name = fold(token.text)
        is_call = (name.startswith("ducklake_") or name == "read_files") and not is_quoted(token)
        before = reader.tokens[index - 1].text.upper().split()[-1:] if index else []
        if (
            is_call
            and reader.tokens[index + 1].text == "("
            and before
            and before[0] in (*_BEFORE_TABLE, ",", "LATERAL")
        ):
            yield _call_at(reader, index, None)


def _call_at(reader: Reader, index: int, has_alias: bool | None) -> TableUse:
    reader.at = index + 2
    name = Name((reader.tokens[index].text,), place_of(reader.sql, reader.tokens[index].start))
    arguments = reader.text_until(")")
    reader.expect(")")
    end = reader.tokens[reader.at - 1].end + 1
    if has_alias is None:
        has_alias = _sees_alias(reader)
    return TableUse(name, reader.tokens[index].start, end, None if has_alias else end, None, arguments)


def _travel(reader: Reader) -> Travel | None:
    reader.accept("FOR")
    for words in _TIME_TRAVEL:
        if reader.accept(*words):
            return Travel("VERSION" in words[0], primary_in(reader))
    return None


def primary_in(reader: Reader) -> str:
    """The text of one value: a literal, with its type before it or not, a call, or anything in parentheses."""
    start = reader.at
    if reader.word() != "(":
        is_typed = reader.word() in ("TIMESTAMP", "DATE")
        reader.at += 1
        if is_typed and not reader.is_done and is_quoted(reader.tokens[reader.at]):
            reader.at += 1
    if reader.accept("("):
        reader.text_until(")")
        reader.expect(")")
    return reader.between(start, reader.at)


def _skip_sample(reader: Reader) -> None:
    if not reader.accept("TABLESAMPLE"):
        return
    for words in ((), ("REPEATABLE",)):
        if reader.accept(*words, "("):
            reader.text_until(")")
            reader.expect(")")


# Words after a table that begin a clause and are no alias.
_NO_ALIAS = frozenset(
    {"ON", "USING", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "MINUS", "JOIN"}
    | {"INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "LATERAL", "PIVOT", "UNPIVOT", "WINDOW", "CLUSTER"}
    | {"DISTRIBUTE", "SORT", "SEMI", "ANTI", "SELECT", "OFFSET", "TABLESAMPLE", "QUALIFY"}
)


def _sees_alias(reader: Reader) -> bool:
    if reader.is_done:
        return False
    token = reader.tokens[reader.at]
    if token.token_type is TokenType.IDENTIFIER:
        return True
    word = reader.word().split(" ")[0]
    return (word[:1].isalpha() or word[:1] == "_") and word not in _NO_ALIAS


def _is_cte(table: exp.Table) -> bool:
    """Whether a name of one part is that of a CTE which is visible where it stands."""
    if table.db:
        return False
    name = fold(table.name)
    child: exp.Expr = table
    parent = table.parent
    while parent is not None:
        with_ = parent.args.get("with_")
        if isinstance(with_, exp.With) and with_ is not child and _names(with_, None) & {name}:
            return True
        # A CTE sees those before it, and itself where it is recursive.
        if isinstance(parent, exp.With) and isinstance(child, exp.CTE):
            own = {fold(child.alias)} if parent.args.get("recursive") else set()
            if name in _names(parent, child) | own:
                return True
        child, parent = parent, parent.parent
    return False


def _names(with_: exp.With, before: exp.Expr | None) -> set[str]:
    found = set()
    for cte in with_.expressions:
        if cte is before:
            break
        found.add(fold(cte.alias))
    return found


def _after_table_keyword(reader: Reader) -> Iterator[TableUse]:
    """`TABLE t`, which is a query of its own and which sqlglot takes for a column."""
    for index, token in enumerate(reader.tokens[:-1]):
        before = reader.tokens[index - 1].text.upper() if index else ""
        if token.text.upper() == "TABLE" and not is_quoted(token) and before in ("", "(", "UNION", "ALL", "AS", "|>"):
            following = reader.tokens[index + 1]
            if following.text[:1].isalpha() or is_quoted(following):
                yield _use_at(reader, index + 1, has_alias=True)


def _by_tokens(reader: Reader) -> Iterator[TableUse]:
    """For a query that sqlglot cannot parse: dotted names in places where a table can stand.

    The caller leaves alone what is no table of a lake; names of one part that a CTE of any depth has are left out.
    """
    ctes = {fold(reader.tokens[index].text) for index in range(len(reader.tokens)) if _is_cte_at(reader, index)}
    for index, token in enumerate(reader.tokens):
        before = reader.tokens[index - 1].text.upper().split()[-1:] if index else []
        if not before or before[0] not in _BEFORE_TABLE or token.text in ("(", ")", ","):
            continue
        is_call = index + 1 < len(reader.tokens) and reader.tokens[index + 1].text == "("
        if not is_call and (token.token_type is TokenType.IDENTIFIER or token.text[:1].isalpha()):
            use = _use_at(reader, index)
            if len(use.name.parts) > 1 or fold(use.own_name) not in ctes:
                yield use


def _is_cte_at(reader: Reader, index: int) -> bool:
    """Whether a CTE is defined here: `name [(columns)] [MAX RECURSION LEVEL n] [AS] (` behind WITH or a comma."""
    before = reader.tokens[index - 1].text.upper() if index else ""
    if before not in ("WITH", "RECURSIVE", ","):
        return False
    reader.at = index + 1
    if reader.accept("("):
        reader.text_until(")")
        if not reader.accept(")"):
            return False
    if reader.accept("MAX", "RECURSION", "LEVEL"):
        reader.at += 1
    return reader.accept("AS", "(") or reader.accept("(")


def place_in(sql: str, use: TableUse) -> Place:
    return place_of(sql, use.start)
