"""Choose an alias for each table that has none, and put it in place of the table's name before its columns.

The view that stands for a table has no lake and no schema, so `main.orders.id` has to become `orders.id`. That is right
as long as nothing else is called `orders` where the column is named; otherwise the table gets an alias that nothing
else has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count

from sqlglot import exp
from sqlglot.tokens import Token

from dbt.adapters.ducklake.lake import fold
from dbt.adapters.ducklake.spark.schema import quoted
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.reader import Reader, is_quoted, is_string, place_of
from dbt.adapters.ducklake.statements.scopes import Chain, Located, chains_in, readings

Edit = tuple[int, int, str]
# sqlglot writes a query with pipes as CTEs of these names, behind which a table's own name is lost.
_OF_PIPES = "__tmp"


def qualified(
    sql: str, parsed: exp.Expr | None, own_names: Mapping[int, str], tables: Mapping[int, Located]
) -> tuple[dict[int, str], list[Edit]]:
    """Return the alias of each table by where its name begins, and the edits of the columns' qualifiers.

    `own_names` are the last names of the tables without an alias, `tables` all that are known of the query's.
    """
    if parsed is None:
        return dict(own_names), list(_by_tokens(sql, own_names, tables))
    chains = chains_in(parsed, tables)
    aliases, edits = dict(own_names), list[Edit]()
    with_schema: dict[int, list[tuple[Chain, int]]] = {}
    for chain in chains:
        if any(_length_of(chain.parts, tables[start]) for start in own_names):
            found = _meant(sql, chain, own_names, shortest=2)
            if found is not None:
                with_schema.setdefault(found[0], []).append((chain, found[1]))
    for start, uses in with_schema.items():
        if all(_means(chain, length, start, own_names[start]) for chain, length in uses):
            edits += [_edit(chain, length, own_names[start]) for chain, length in uses]
            continue
        aliases[start] = alias = _unused(sql, own_names[start], aliases.values())
        for chain in chains:
            found = _meant(sql, chain, {start: own_names[start]})
            if found is not None:
                edits.append(_edit(chain, found[1], alias))
    return aliases, edits + list(_in_pipes(parsed, chains, own_names, tables, edits))


def _length_of(parts: Sequence[str], table: Located) -> int | None:
    """How many of the parts of a dotted name are a table's with its schema; None where they are another's."""
    for length in range(len(parts) - 1, 1, -1):
        for name in (table.name, table.as_written):
            if length <= len(name) and name[-length:] == tuple(parts[:length]):
                return length
    return None


def _meant(sql: str, chain: Chain, own_names: Mapping[int, str], shortest: int = 1) -> tuple[int, int] | None:
    """Which of these tables a chain names, and by how many of its parts; None if it names none of them by so many.
    NotAllowed if it may name one of them or something else."""
    found = readings(chain)
    wanted = [
        (relation.start, reading.qualifier)
        for reading in found
        for relation in reading.relations
        if relation.start in own_names and reading.qualifier >= shortest
    ]
    if not wanted:
        return None
    if len(found) > 1 or len(found[0].relations) > 1:
        name = ".".join(sql[start:end] for start, end in chain.places)
        raise NotAllowed(
            f"resolve {name}", "it may name more than one table, or a column of a subquery whose columns are not known",
            "Give the table an alias and name the column by it.", place_of(sql, chain.places[0][0]),
        )  # fmt: skip
    start, length = wanted[0]
    assert start is not None
    return start, length


def _means(chain: Chain, length: int, start: int, own_name: str) -> bool:
    """Whether the chain still means the same table if its own name alone stands before the column."""
    found = readings(chain, (fold(own_name), *chain.parts[length:]))
    return len(found) == 1 and found[0].qualifier == 1 and [one.start for one in found[0].relations] == [start]


def _edit(chain: Chain, length: int, alias: str) -> Edit:
    return chain.places[0][0], chain.places[length - 1][1], quoted(alias)


def _unused(sql: str, own_name: str, taken: Collection[str]) -> str:
    words = {*map(fold, taken), *(fold(token.text) for token in Reader(sql).tokens)}
    names = (f"_ducklake_{own_name}_{number}" for number in count(1))
    return next(name for name in names if fold(name) not in words)


def _in_pipes(
    parsed: exp.Expr, chains: Sequence[Chain], own_names: Mapping[int, str], tables: Mapping[int, Located],
    edits: Sequence[Edit],
) -> Iterator[Edit]:  # fmt: skip
    """The names behind a pipe, of a table whose own name nothing else in the query has."""
    aliases = [fold(alias.name) for alias in parsed.find_all(exp.TableAlias) if alias.name]
    if not any(alias.startswith(_OF_PIPES) for alias in aliases):
        return
    names = [*aliases, *map(fold, own_names.values())]
    edited = {start for start, _, _ in edits}
    for chain in chains:
        for start, own_name in own_names.items():
            length = _length_of(chain.parts, tables[start])
            if length and names.count(fold(own_name)) == 1 and chain.places[0][0] not in edited:
                yield _edit(chain, length, own_name)


def _by_tokens(sql: str, own_names: Mapping[int, str], tables: Mapping[int, Located]) -> Iterator[Edit]:
    """The edits of a query that could only be read word by word: its scopes are not known, so there must be one."""
    tokens = Reader(sql).tokens
    words = [token.text.upper() for token in tokens if not is_quoted(token)]
    has_subquery = words.count("SELECT") > 1 or words.count("FROM") > 1
    names = [fold(name) for name in own_names.values()]
    for chain in _dotted(tokens):
        parts = tuple(fold(token.text) for token in chain)
        for start, own_name in own_names.items():
            length = _length_of(parts, tables[start])
            if length is None or chain[0].start == start:
                continue
            if has_subquery or names.count(fold(own_name)) > 1:
                raise NotAllowed(
                    f"resolve {'.'.join(token.text for token in chain)}",
                    "this query could only be read word by word, so it is not known which table is meant",
                    "Give the table an alias and name the column by it.", place_of(sql, chain[0].start),
                )  # fmt: skip
            yield chain[0].start, chain[length - 1].end + 1, quoted(own_name)


def _dotted(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The names with dots in them."""
    at = 0
    while at < len(tokens):
        chain = [tokens[at]]
        while at + 2 < len(tokens) and tokens[at + 1].text == "." and not is_string(tokens[at + 2]):
            chain.append(tokens[at + 2])
            at += 2
        at += 1
        if len(chain) > 1 and not is_string(chain[0]):
            yield chain
