"""A Spark query in DuckDB's SQL: its clauses, what its names mean, and the types of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dbt.adapters.ducklake.lake import Column, fold, quoted

# The rules register themselves.
from dbt.adapters.ducklake.statements.translation import aggregates, arithmetic, dates, numbers, texts
from dbt.adapters.ducklake.statements.translation import types as t
from dbt.adapters.ducklake.statements.translation.aggregates import direction, ordered
from dbt.adapters.ducklake.statements.translation.casts import Zone, widened
from dbt.adapters.ducklake.statements.translation.expressions import Expressions, compared
from dbt.adapters.ducklake.statements.translation.relations import ColumnOf, Output, Relation, Scope, only_column
from dbt.adapters.ducklake.statements.translation.typed import Typed, Untranslatable

_RULES = (aggregates, arithmetic, dates, numbers, texts)
UNNAMED = "_ducklake_unnamed_"
_JOINS = {"": "JOIN", "INNER": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "FULL": "FULL JOIN",
          "CROSS": "CROSS JOIN", "SEMI": "SEMI JOIN", "ANTI": "ANTI JOIN"}  # fmt: skip
# Joins that show the columns of the left side alone.
_OF_ONE_SIDE = ("SEMI JOIN", "ANTI JOIN")


@dataclass(frozen=True)
class TableOf:
    """A table or view of the lake: its name in DuckDB's SQL, its columns, and what says its version."""

    sql: str
    columns: tuple[Output, ...]
    at: str = ""


class Query:
    """Translates one query and what is in it. `tables` are by where their names begin in the text."""

    def __init__(self, tables: Mapping[int, TableOf], zone: Zone) -> None:
        self.tables, self.zone = tables, zone
        self._unnamed = 0
        # Whether a column is asked for as it is, to be passed on.
        self._raw = False
        self._scope = Scope()
        self._ctes: dict[str, tuple[Output, ...]] = {}
        # The conditions of WHERE that decide about a row by themselves, or with AND, OR and NOT.
        self._filters: set[int] = set()
        self.expressions = Expressions(self)

    def translated(self, node: exp.Expr) -> tuple[str, tuple[Output, ...]]:
        """The query in DuckDB's SQL, and its columns. Untranslatable."""
        before = dict(self._ctes)
        try:
            head = self._with(node)
            sql, columns = self._query(node)
            return head + sql, columns
        finally:
            self._ctes = before

    # What an expression asks for.

    def column(self, node: exp.Column) -> Typed:
        parts = [part.name for part in node.parts]
        found = self._scope.find(parts, node, self._raw)
        if found is None and len(parts) == 1:
            found = self._scope.aliases.get(fold(parts[0]))
        scope = self._scope.outer
        while found is None and scope is not None:
            found = scope.find(parts, node, self._raw)
            scope = scope.outer
        if found is None:
            raise Untranslatable(node, f"{'.'.join(parts)} is not known here")
        return found

    def one_value(self, node: exp.Expr) -> Typed:
        sql, columns = self._inner(node.this)
        if len(columns) != 1:
            raise Untranslatable(node, "a query of one value has one column")
        return Typed(f"({sql})", columns[0].type)

    def exists(self, node: exp.Expr) -> str:
        sql, _ = self._inner(node)
        return f"EXISTS ({sql})"

    def is_filter(self, node: exp.Expr) -> bool:
        return id(node) in self._filters

    def rows_of(self, node: exp.Expr) -> tuple[str, list[Column]]:
        sql, columns = self._inner(node.this if isinstance(node, exp.Subquery) else node)
        return f"({sql})", [column.type for column in columns]

    def _inner(self, node: exp.Expr) -> tuple[str, tuple[Output, ...]]:
        own = self._scope
        self._scope = Scope(outer=own)
        try:
            return self.translated(node)
        finally:
            self._scope = own

    # Clauses.

    def _with(self, node: exp.Expr) -> str:
        with_ = node.args.get("with_")
        if with_ is None:
            return ""
        if with_.args.get("recursive"):
            raise Untranslatable(with_, "a recursive query")
        found = []
        for cte in with_.expressions:
            names = [column.name for column in cte.args["alias"].columns]
            sql, columns = self._apart(cte.this)
            columns = _renamed(columns, names, cte)
            listed = f"({', '.join(map(quoted, names))})" if names else ""
            found.append(f"{quoted(cte.alias)}{listed} AS ({sql})")
            self._ctes[fold(cte.alias)] = columns
        return f"WITH {', '.join(found)} "

    def _apart(self, node: exp.Expr) -> tuple[str, tuple[Output, ...]]:
        """A query that sees nothing of the one that it stands in, but what that one sees of others."""
        own = self._scope
        self._scope = Scope(outer=own.outer)
        try:
            return self.translated(node)
        finally:
            self._scope = own

    def _query(self, node: exp.Expr) -> tuple[str, tuple[Output, ...]]:
        if isinstance(node, exp.Select):
            return self._select(node)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node)
        if isinstance(node, exp.Subquery):
            _refuse_others(node, "this with_")
            sql, columns = self.translated(node.this)
            return f"({sql})", columns
        raise Untranslatable(node, "this is no query that is known here")

    def _set_operation(self, node: exp.SetOperation) -> tuple[str, tuple[Output, ...]]:
        _refuse_others(node, "this expression distinct with_ order limit offset")
        (left, columns), (right, others) = self._apart(node.this), self._apart(node.expression)
        if len(columns) != len(others):
            raise Untranslatable(node, "the queries have different numbers of columns")
        outputs = tuple(
            Output(one.name, self._same_type(one, other, node)) for one, other in zip(columns, others, strict=True)
        )
        word = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}[type(node)]
        every = "" if node.args.get("distinct") else " ALL"
        one, other = (self._branch(sql, given, outputs, not every) for sql, given in ((left, columns), (right, others)))
        sql = f"{one} {word}{every} {other}"
        own = self._scope
        self._scope = Scope([Relation("", outputs)], own.outer)
        try:
            return f"{sql}{self._end(node)}", outputs
        finally:
            self._scope = own

    def _branch(self, sql: str, columns: Sequence[Output], wanted: Sequence[Output], is_distinct: bool) -> str:
        """A branch of a set operation with the types that both have in common."""
        if is_distinct and any(one.type.type.name in t.FLOATS for one in wanted):
            raise Untranslatable(None, "of equal numbers, 0.0 and -0.0, Spark shows the first kind")
        # By place: names may be there twice.
        names = [f"_ducklake_{place}" for place in range(len(columns))]
        values = ", ".join(
            widened(Typed(quoted(name), one.type), other.type, self.zone, None).sql + f" AS {quoted(other.name)}"
            for name, one, other in zip(names, columns, wanted, strict=True)
        )
        return f"SELECT {values} FROM ({sql}) AS _ducklake_branch({', '.join(map(quoted, names))})"

    def _same_type(self, one: Output, other: Output, node: exp.Expr) -> Column:
        found = t.common(one.type, other.type)
        if found is None:
            raise Untranslatable(node, f"{one.type.type} and {other.type.type} have no type in common without a cast")
        return found

    def _select(self, node: exp.Select) -> tuple[str, tuple[Output, ...]]:
        _refuse_others(
            node, "expressions from_ joins where group having order limit offset distinct with_ hint kind windows"
        )
        if node.args.get("windows"):
            raise Untranslatable(node, "a window that has a name")
        scope, to = self._scope, self.expressions
        clauses = []
        if (from_ := node.args.get("from_")) is not None:
            clauses.append(f" FROM {self._source(from_.this, scope)}")
        clauses += [self._join(join, scope) for join in node.args.get("joins") or ()]
        shown, values = [], list[tuple[str, Typed]]()
        for projection in node.expressions:
            found = self._projected(projection)
            values += found
            # A star stays one, as it does for Spark: the table may get more columns.
            star = self._star(projection)
            shown += [star] if star else [f"{value.sql} AS {quoted(name)}" for name, value in found]
        if (where := node.args.get("where")) is not None:
            clauses.append(f" WHERE {self._filtered(where.this)}")
        if (group := node.args.get("group")) is not None:
            clauses.append(f" GROUP BY {self._keys(group, node)}")
        if (having := node.args.get("having")) is not None:
            self._refuse_shadowing(having.this)
            clauses.append(f" HAVING {to.boolean(having.this)}")
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise Untranslatable(node, "DISTINCT ON")
        if distinct is not None and any(value.kind in t.FLOATS for _, value in values):
            raise Untranslatable(node, "of equal numbers, 0.0 and -0.0, Spark shows the first kind")
        head = f"SELECT {'DISTINCT ' if distinct is not None else ''}{', '.join(shown)}"
        outputs = tuple(Output(name, value.type) for name, value in values)
        return head + "".join(clauses) + self._end(node), outputs

    def _joined_by(self, name: str, left: Sequence[Relation], scope: Scope, word: str, node: exp.Expr) -> str:
        """The condition of one column in USING. From then on its plain name means one column of both sides."""
        before = scope.merged.get(fold(name)) or only_column(name, left, node)
        after = only_column(name, scope.relations[len(left) :], node)
        one, other = (side if isinstance(side, Typed) else side.value(node) for side in (before, after))
        pair = compared(self.expressions, one, other, node)
        if word == "FULL JOIN":
            first, second = self.expressions.alike([one, other], node)
            scope.merged[fold(name)] = Typed(f"coalesce({first.sql}, {second.sql})", first.type)
        elif word not in _OF_ONE_SIDE:
            scope.merged[fold(name)] = after if word == "RIGHT JOIN" else before
        return f"{pair[0].sql} = {pair[1].sql}"

    def _filtered(self, node: exp.Expr) -> str:
        """The condition of WHERE, in which the names of the select list do not count."""
        parts = [node]
        for part in parts:
            if isinstance(part, exp.And | exp.Or):
                parts += [part.this, part.expression]
            elif isinstance(part, exp.Not | exp.Paren):
                parts.append(part.this)
        self._filters |= set(map(id, parts))
        aliases, self._scope.aliases = self._scope.aliases, {}
        try:
            return self.expressions.boolean(node)
        finally:
            self._scope.aliases = aliases

    def _refuse_shadowing(self, node: exp.Expr) -> None:
        """In HAVING and ORDER BY, Spark takes the select list's names before the tables'."""
        for column in node.find_all(exp.Column):
            alias = self._scope.aliases.get(fold(column.name)) if not column.table else None
            own = None if alias is None else self._scope.find([column.name], column, self._raw)
            if alias is not None and own is not None and own.sql != alias.sql:
                raise Untranslatable(node, f"{column.name} is a column and another one in the select list")

    def _star(self, node: exp.Expr) -> str | None:
        if isinstance(node, exp.Star) and not node.args.get("except_"):
            return "*"
        is_of_one = isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
        return f"{quoted(node.text('table'))}.*" if is_of_one and not node.this.args.get("except_") else None

    def _projected(self, node: exp.Expr) -> list[tuple[str, Typed]]:
        """The columns of one entry of a select list."""
        if isinstance(node, exp.Star):
            _refuse_others(node, "except_")
            self._refuse_merged(node)
            return self._all_columns(self._scope.relations, node.args.get("except_") or ())
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            _refuse_others(node.this, "except_")
            self._refuse_merged(node)
            named = [one for one in self._scope.relations if one.alias and fold(one.alias) == fold(node.table)]
            if len(named) != 1:
                raise Untranslatable(node, f"{node.table} is not known here")
            return self._all_columns(named, node.this.args.get("except_") or ())
        if isinstance(node, exp.Alias):
            value = self._passed_on(node.this)
            self._scope.aliases.setdefault(fold(node.alias), value)
            return [(node.alias, value)]
        if isinstance(node, exp.Column | exp.Dot):
            return [(node.name or node.expression.name, self._passed_on(node))]
        # Spark names it by its text.
        self._unnamed += 1
        return [(f"{UNNAMED}{self._unnamed}", self.expressions.of(node))]

    def _refuse_merged(self, node: exp.Expr) -> None:
        if self._scope.merged:
            raise Untranslatable(node, "the columns of a join with USING come in another order")

    def _passed_on(self, node: exp.Expr) -> Typed:
        """A value of the select list: a column keeps the type that it has in the lake."""
        if isinstance(node, exp.Column):
            self._raw = True
            try:
                return self.column(node)
            finally:
                self._raw = False
        return self.expressions.of(node)

    def _all_columns(self, relations: Sequence[Relation], passed: Iterable[exp.Expr]) -> list[tuple[str, Typed]]:
        left_out = {fold(one.name) for one in passed}
        return [
            (column.name, ColumnOf(relation, column).as_it_is)
            for relation in relations
            for column in relation.columns
            if fold(column.name) not in left_out
        ]

    def _keys(self, group: exp.Expr, node: exp.Select) -> str:
        _refuse_others(group, "expressions all")
        if group.args.get("all"):
            plain = [one for one in node.expressions if not one.find(exp.AggFunc)]
            if not all(one.find(exp.Column, exp.Star) for one in plain):
                raise Untranslatable(group, "GROUP BY ALL with a constant")
            keys = [value for one in plain for _, value in self._projected(one)]
        else:
            values = [value for one in node.expressions for _, value in self._projected(one)]
            keys = [
                values[_place(key, len(values)) - 1] if _is_place(key) else self.expressions.of(key)
                for key in map(_without_parentheses, group.expressions)
            ]
        if any(key.kind in t.FLOATS for key in keys):
            raise Untranslatable(group, "of equal numbers, 0.0 and -0.0, Spark shows the first kind")
        return "ALL" if group.args.get("all") else ", ".join(key.sql for key in keys)

    def _end(self, node: exp.Expr) -> str:
        """ORDER BY, LIMIT and OFFSET."""
        sql = ""
        if (order := node.args.get("order")) is not None:
            sql += f" ORDER BY {', '.join(self._order_key(one) for one in order.expressions)}"
        for key, word in (("limit", "LIMIT"), ("offset", "OFFSET")):
            if (clause := node.args.get(key)) is not None:
                count = self.expressions.of(clause.expression)
                if count.number is None:
                    raise Untranslatable(clause, f"{word} of something else than a number")
                sql += f" {word} {count.number}"
        return sql

    def _order_key(self, node: exp.Expr) -> str:
        key = _without_parentheses(node.this)
        if _is_place(key):
            return f"{key.this} {direction(node)}"
        own = self._scope.aliases.get(fold(key.name)) if isinstance(key, exp.Column) and not key.table else None
        if own is not None and isinstance(node, exp.Ordered):
            # Behind the select list an alias goes before a column.
            return f"{quoted(key.name)} {direction(node)}"
        if isinstance(key, exp.Var) and fold(key.name) == "all":
            columns = [fold(column.name) for one in self._scope.relations for column in one.columns]
            if "all" in columns or (node.parent and len(node.parent.expressions) > 1):
                raise Untranslatable(key, "ALL may be a column here")
            return f"ALL {direction(node)}"
        self._refuse_shadowing(key)
        return ordered(self.expressions, node)

    # FROM.

    def _source(self, node: exp.Expr, scope: Scope) -> str:
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier | exp.Dot):
            # Whoever found the table has seen to its version.
            _refuse_others(node, "this db catalog alias joins version")
            return self._table(node, scope)
        if isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Table):
            _refuse_others(node, "this alias with_")
            sql, columns = self._apart(node.this)
            names = [one.name for one in node.args["alias"].columns] if node.args.get("alias") else []
            columns = _renamed(columns, names, node)
            alias = node.alias or f"_subquery_{len(scope.relations)}"
            scope.relations.append(Relation(node.alias, columns))
            listed = f"({', '.join(map(quoted, names))})" if names else ""
            return f"({sql}) AS {quoted(alias)}{listed}"
        raise Untranslatable(node, "this source of rows is not known here")

    def _table(self, node: exp.Table, scope: Scope) -> str:
        start = min((part.meta["start"] for part in node.parts if "start" in part.meta), default=-1)
        alias = node.alias or node.name
        if start in self.tables:
            found = self.tables[start]
            sql, columns, at = found.sql, found.columns, found.at
        elif len(node.parts) == 1 and fold(node.name) in self._ctes:
            sql, columns, at = quoted(node.name), self._ctes[fold(node.name)], ""
        else:
            raise Untranslatable(node, f"{node.sql(dialect='spark')} is in no lake, or in another")
        names = [one.name for one in node.args["alias"].columns] if node.args.get("alias") else []
        columns = _renamed(columns, names, node)
        scope.relations.append(Relation(alias, columns))
        listed = f"({', '.join(map(quoted, names))})" if names else ""
        # DuckDB wants the version behind the alias.
        sql = f"{sql} AS {quoted(alias)}{listed}{at}"
        return sql + "".join(self._join(join, scope) for join in node.args.get("joins") or ())

    def _join(self, node: exp.Expr, scope: Scope) -> str:
        _refuse_others(node, "this on side kind using method")
        if str(node.args.get("method") or "").upper() == "NATURAL":
            raise Untranslatable(node, "a natural join goes by the columns that the tables have now")
        side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
        word = _JOINS.get(kind if kind in ("CROSS", "SEMI", "ANTI") else side)
        if word is None:
            raise Untranslatable(node, f"a {side} {kind} join is not known here")
        left, using = list(scope.relations), node.args.get("using") or []
        sql = self._source(node.this, scope)
        on = node.args.get("on")
        condition = "" if on is None else f" ON {self.expressions.boolean(on)}"
        if using:
            keys = [self._joined_by(key.name, left, scope, word, node) for key in using]
            condition = f" ON {' AND '.join(keys)}"
        if word in _OF_ONE_SIDE:
            scope.relations[:] = left
        if condition:
            return f" {word} {sql}{condition}"
        if word == "JOIN":
            word = "CROSS JOIN"
        elif word != "CROSS JOIN":
            condition = " ON TRUE"
        return f" {word} {sql}{condition}"


def is_unnamed(name: str) -> bool:
    """Whether a column of the outermost query has no name of its own."""
    return name.startswith(UNNAMED)


def _without_parentheses(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_place(key: exp.Expr) -> bool:
    return isinstance(key, exp.Literal) and not key.is_string


def _place(key: exp.Expr, count: int) -> int:
    if not key.name.isdecimal() or not 0 < int(key.name) <= count:
        raise Untranslatable(key, "it is no place in the select list")
    return int(key.name)


def _renamed(columns: Sequence[Output], names: Sequence[str], node: exp.Expr) -> tuple[Output, ...]:
    if not names:
        return tuple(columns)
    if len(names) != len(columns):
        raise Untranslatable(node, "it names another number of columns than there are")
    return tuple(Output(name, column.type) for name, column in zip(names, columns, strict=True))


def _refuse_others(node: exp.Expr, takes: str) -> None:
    known = set(takes.split())
    for key, value in node.args.items():
        if value not in (None, [], False, "") and key not in known:
            raise Untranslatable(node, f"{key.strip('_')} is not known to be the same in DuckDB")
