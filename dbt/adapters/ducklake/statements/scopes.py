"""Find the relation that each qualified name of a query refers to, by the rule that Spark applies to real catalogs.

A name such as `main.orders.id` is looked for in the innermost query first, and there as a column of a relation that its
first parts name, the more the better, then as a column with fields in it. If the innermost query has neither, the query
around it is searched. A table without an alias is named by its lake, schema and name or by the last of these; a
relation with an alias by its alias alone. So the columns of the relations decide: those of tables are known, those of
subqueries follow from their select lists, and where they cannot be known, a name may have several readings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt.adapters.ducklake.lake import fold

# The folded names of a relation's columns; None if they are not known.
Columns = frozenset[str] | None
Lazy = Callable[[], Columns]


@dataclass(frozen=True, eq=False)
class Relation:
    """A relation in FROM. `name` is its alias, or the whole name of a table that has none; `start` is where the name
    of a table without an alias begins in the text."""

    name: tuple[str, ...]
    columns: Lazy
    start: int | None = None
    as_written: tuple[str, ...] = ()

    def is_named_by(self, qualifier: tuple[str, ...]) -> bool:
        names = (self.name, self.as_written)
        return any(len(qualifier) <= len(name) and name[-len(qualifier) :] == qualifier for name in names)


@dataclass(frozen=True)
class Sight:
    """The relations that a name can refer to: those of its own query, then those of the queries around it."""

    relations: tuple[Relation, ...] = ()
    outer: Sight | None = None

    def with_relations(self, more: Sequence[Relation]) -> Sight:
        return replace(self, relations=(*self.relations, *more))


@dataclass(frozen=True)
class Chain:
    """A dotted name: its folded parts, where each begins and ends in the text, and what it can refer to."""

    parts: tuple[str, ...]
    places: tuple[tuple[int, int], ...]
    sight: Sight | None

    @property
    def is_star(self) -> bool:
        return self.parts[-1] == "*"


@dataclass(frozen=True)
class Reading:
    """One possible reading of a chain: the relations that have the column, of which Spark allows one only, and how many
    parts of the chain name them (0: the chain begins with a column)."""

    relations: tuple[Relation, ...]
    qualifier: int


def readings(chain: Chain, parts: tuple[str, ...] | None = None) -> list[Reading]:
    """Return the possible readings of a chain, or of other parts in its place: none if nothing has the column, more
    than one if columns are not known."""
    wanted, found, sight = parts or chain.parts, list[Reading](), chain.sight
    while sight is not None:
        for reading, is_certain in _readings_in(sight, wanted, chain.is_star):
            found.append(reading)
            if is_certain:
                return found
        # `t.*` means a relation of its own query and no other.
        sight = None if chain.is_star else sight.outer
    return found


def _readings_in(sight: Sight, parts: tuple[str, ...], is_star: bool) -> Iterator[tuple[Reading, bool]]:
    """The readings among the relations of one query, and whether no other reading comes after it."""
    for length in range(len(parts) - 1, -1, -1):
        named = [one for one in sight.relations if not length or one.is_named_by(parts[:length])]
        if is_star and length < len(parts) - 1:
            return
        has = [(one, True if is_star else _has(one, parts[length])) for one in named]
        if candidates := tuple(one for one, it in has if it is not False):
            yield Reading(candidates, length), any(it for _, it in has)


def _has(relation: Relation, column: str) -> bool | None:
    columns = relation.columns()
    return None if columns is None else column in columns


@dataclass(frozen=True)
class Located:
    """A table that a query names: its name with lake and schema, folded, and its columns. `as_written` is its name as
    it stands there, such as `a.b` in backticks for a schema that lies in another."""

    name: tuple[str, ...]
    columns: Lazy
    as_written: tuple[str, ...] = ()


def chains_in(parsed: exp.Expr, tables: Mapping[int, Located]) -> list[Chain]:
    """Return the dotted names of a query; `tables` are by where their names begin in the text."""
    collector = _Collector(tables)
    collector.query(parsed, None, {})
    seen = {id(column) for column in collector.seen}
    # What the walk does not reach may refer to anything.
    missed = [collector.chain(column, None) for column in parsed.find_all(exp.Column) if id(column) not in seen]
    return [*collector.chains, *(chain for chain in missed if chain is not None)]


@dataclass
class _Collector:
    tables: Mapping[int, Located]
    chains: list[Chain] = field(default_factory=list)
    seen: list[exp.Column] = field(default_factory=list)

    def query(self, node: exp.Expr, outer: Sight | None, ctes: Mapping[str, Lazy]) -> Lazy:
        """Collect the names of a query; `outer` is what it can see of the queries around it. Its columns."""
        ctes = self._ctes(node, outer, ctes)
        if isinstance(node, exp.Select):
            return self._select(node, outer, ctes)
        if isinstance(node, exp.SetOperation):
            columns = self.query(node.this, outer, ctes)
            self.query(node.expression, outer, ctes)
            self._others(node, {"this", "expression", "with_"}, Sight(outer=outer), ctes)
            return columns
        if isinstance(node, exp.Subquery):
            columns = self.query(node.this, outer, ctes)
            self._others(node, {"this", "with_", "alias", "joins", "laterals"}, Sight(outer=outer), ctes)
            return columns
        if isinstance(node, exp.Table):
            relations = self._source(node, Sight(outer=outer), ctes)
            return lambda: _union(relation.columns() for relation in relations)
        self._names(node, Sight(outer=outer), ctes)
        return _unknown

    def _ctes(self, node: exp.Expr, outer: Sight | None, ctes: Mapping[str, Lazy]) -> Mapping[str, Lazy]:
        with_ = node.args.get("with_")
        if not isinstance(with_, exp.With):
            return ctes
        known = dict(ctes)
        for cte in with_.expressions:
            name = fold(cte.alias)
            own = {**known, name: _named(cte) or _unknown} if with_.args.get("recursive") else known
            columns = self.query(cte.this, outer, own)
            known[name] = _named(cte) or columns
        return known

    def _select(self, node: exp.Select, outer: Sight | None, ctes: Mapping[str, Lazy]) -> Lazy:
        sight = Sight(outer=outer)
        from_ = node.args.get("from_")
        if isinstance(from_, exp.From):
            sight = sight.with_relations(self._source(from_.this, sight, ctes))
        sight = self._joined(node, sight, ctes)
        self._others(node, {"from_", "joins", "laterals", "with_"}, sight, ctes)
        return lambda: _outputs(node.expressions, sight)

    def _joined(self, node: exp.Expr, sight: Sight, ctes: Mapping[str, Lazy]) -> Sight:
        """What can be seen behind the joins and lateral views of a node. A condition sees what is joined so far."""
        for join in node.args.get("joins") or ():
            sight = sight.with_relations(self._source(join.this, sight, ctes))
            self._others(join, {"this"}, sight, ctes)
        for lateral in node.args.get("laterals") or ():
            sight = sight.with_relations(self._source(lateral, sight, ctes))
        return sight

    def _source(self, node: exp.Expr, sight: Sight, ctes: Mapping[str, Lazy]) -> list[Relation]:
        """The relations of one source of FROM. It sees the relations before it only if it is LATERAL."""
        if isinstance(node, exp.Table):
            own = [self._table(node, sight, ctes)]
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            # Joins in parentheses.
            own = self._source(node.this, sight, ctes)
        elif isinstance(node, exp.Lateral):
            inner = node.this
            if isinstance(inner, exp.Subquery):
                columns = self.query(inner, sight, ctes)
            else:
                self._names(inner, sight, ctes)
                columns = _unknown
            return [Relation(_alias(node), _named(node) or columns)]
        elif isinstance(node, exp.Query):
            own = [Relation((), self.query(node, sight.outer, ctes))]
        else:
            self._names(node, sight, ctes)
            own = [Relation((), _unknown)]
        if alias := _alias(node):
            columns = own[0].columns if len(own) == 1 else (lambda: _union(one.columns() for one in own))
            own = [Relation(alias, _named(node) or columns)]
        own = self._pivoted(node, own, sight, ctes)
        return list(self._joined(node, Sight(tuple(own), sight.outer), ctes).relations)

    def _table(self, node: exp.Table, sight: Sight, ctes: Mapping[str, Lazy]) -> Relation:
        if not isinstance(node.this, exp.Identifier | exp.Dot):
            # A table function; its arguments may see what is before it.
            self._names(node.this, sight, ctes)
            return Relation((), _unknown)
        self._others(node, {"this", "db", "catalog", "alias", "joins", "laterals", "pivots"}, sight, ctes)
        parts = tuple(fold(part.name) for part in node.parts)
        start = min((part.meta["start"] for part in node.parts if "start" in part.meta), default=-1)
        if start in self.tables:
            table = self.tables[start]
            return Relation(table.name, table.columns, start, table.as_written)
        return Relation(parts, ctes.get(parts[-1], _unknown) if len(parts) == 1 else _unknown)

    def _pivoted(self, node: exp.Expr, own: list[Relation], sight: Sight, ctes: Mapping[str, Lazy]) -> list[Relation]:
        for pivot in node.args.get("pivots") or ():
            self._others(pivot, {"alias"}, Sight(tuple(own), sight.outer), ctes)
            # The columns that are left keep their qualifier, unless the pivot has an alias.
            own = [Relation(_alias(pivot) or one.name, _unknown, one.start) for one in own]
        return own

    def _others(self, node: exp.Expr, passed: set[str], sight: Sight, ctes: Mapping[str, Lazy]) -> None:
        for key, value in node.args.items():
            if key not in passed:
                for one in value if isinstance(value, list) else (value,):
                    if isinstance(one, exp.Expr):
                        self._names(one, sight, ctes)

    def _names(self, node: exp.Expr, sight: Sight, ctes: Mapping[str, Lazy]) -> None:
        if isinstance(node, exp.Column):
            self.seen.append(node)
            if (chain := self.chain(node, sight)) is not None:
                self.chains.append(chain)
            return
        if isinstance(node, exp.Query):
            self.query(node, sight, ctes)
            return
        self._others(node, set(), sight, ctes)

    def chain(self, column: exp.Column, sight: Sight | None) -> Chain | None:
        """The dotted name that begins with a column; None for one that is of one part, or not of the text."""
        named: list[exp.Expr] = [
            part for part in (column.args.get(key) for key in ("catalog", "db", "table", "this")) if part is not None
        ]
        whole: exp.Expr = column
        # A method of a value ends the name.
        while isinstance(whole.parent, exp.Dot) and isinstance(whole.parent.expression, exp.Identifier | exp.Star):
            whole = whole.parent
            named.append(whole.expression)
        is_star = isinstance(named[-1], exp.Star)
        placed = named[:-1] if is_star else named
        if len(named) < 2 or not all(isinstance(one, exp.Identifier) and "start" in one.meta for one in placed):
            return None
        parts = (*(fold(one.name) for one in placed), *(("*",) if is_star else ()))
        return Chain(parts, tuple((one.meta["start"], one.meta["end"] + 1) for one in placed), sight)


def _unknown() -> Columns:
    return None


def _alias(node: exp.Expr) -> tuple[str, ...]:
    alias = node.args.get("alias")
    return (fold(alias.name),) if isinstance(alias, exp.TableAlias) and alias.name else ()


def _named(node: exp.Expr) -> Lazy | None:
    """The columns that an alias names: `AS t(a, b)`."""
    alias = node.args.get("alias")
    names = [fold(one.name) for one in alias.columns] if isinstance(alias, exp.TableAlias) else []
    return (lambda: frozenset(names)) if names else None


def _union(parts: Iterator[Columns]) -> Columns:
    found: set[str] = set()
    for part in parts:
        if part is None:
            return None
        found |= part
    return frozenset(found)


def _outputs(projections: Sequence[exp.Expr], sight: Sight) -> Columns:
    """The columns that a select list gives; None if it cannot be told from its text."""
    return _union(_output(one, sight) for one in projections)


def _output(projection: exp.Expr, sight: Sight) -> Columns:
    if isinstance(projection, exp.Star):
        if projection.args.get("rename"):
            return None
        of_all = _union(relation.columns() for relation in sight.relations)
        return None if of_all is None else of_all - {fold(one.name) for one in projection.args.get("except_") or ()}
    if isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star):
        qualifier = tuple(fold(part.name) for part in projection.parts[:-1])
        named = [relation for relation in sight.relations if relation.is_named_by(qualifier)]
        return named[0].columns() if len(named) == 1 and not projection.this.args.get("except_") else None
    if isinstance(projection, exp.Dot) and isinstance(projection.expression, exp.Star):
        return None
    if isinstance(projection, exp.Aliases):
        return frozenset(fold(str(name)) for name in projection.aliases)
    if isinstance(projection, exp.Alias | exp.Column | exp.Dot):
        return frozenset({fold(projection.alias_or_name or projection.name)})
    # A generator may return columns of any name; the name of another expression is never referred to.
    is_value = isinstance(projection, exp.Condition) and not isinstance(projection, exp.UDTF | exp.Anonymous)
    return frozenset() if is_value else None
