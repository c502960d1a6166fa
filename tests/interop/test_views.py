"""Expressions and queries as a view has them for DuckDB: the same values and types as here, an error, or a refusal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.errors import PySparkException

from dbt.adapters.ducklake.lake import Column
from dbt.adapters.ducklake.spark.errors import SparkRoomError, UnsupportedType
from dbt.adapters.ducklake.spark.query import Spark, fetched, run_query
from dbt.adapters.ducklake.spark.schema import columns_from
from dbt.adapters.ducklake.statements.errors import StatementError
from dbt.adapters.ducklake.statements.translation import types as t
from dbt.adapters.ducklake.statements.translation.casts import Zone
from dbt.adapters.ducklake.statements.translation.parsing import tree_of
from dbt.adapters.ducklake.statements.translation.queries import Query, TableOf
from dbt.adapters.ducklake.statements.translation.relations import Output
from dbt.adapters.ducklake.statements.translation.typed import Untranslatable
from tests.conftest import spark_settings
from tests.sessions import Session, session_over

FIXTURES = Path(__file__).parents[1] / "fixtures" / "views"
ROWS = (FIXTURES / "rows.sql").read_text(encoding="utf-8")
LINES = (FIXTURES / "expressions.sql").read_text(encoding="utf-8").splitlines()
EXPRESSIONS = [line for line in LINES if line and not line.startswith("---")]
# Its value is another one at each reading.
PASSING = frozenset({"current_timestamp()"})
# A view over `e` and over the views before it.
QUERIES = """
select id, count(*), sum(i) from e group by id
select count(*), sum(j % 1000), min(c), max(d), count(distinct b) from e where j < 1000
select b, sum(n) as total, avg(cast(i as double)) from e where abs(cast(i as bigint)) < 1000 group by b order by b
select id, row_number() over (partition by b order by id desc) as place from e
select id, sum(s16) over (order by id rows between 1 preceding and current row) from e
select id, lag(c) over (order by id) as before, first_value(id) over (order by id) from e
select i from e union select s16 from e
select i, 'a' from e union all select j, c from e where j < 10
select id from e except select id from e where b
select id from e intersect select s8 from e
with a as (select id, c from e where id < 5), b as (select a.id from a) select b.id, a.c from b join a on a.id = b.id
select e.id, f.c from e left join e as f on e.id = f.id + 1 and f.b
select * from e semi join (select s8 from e) as x on e.id = x.s8
select id, (select max(f.id) from e as f where f.id < e.id) as below from e
select id from e where exists (select 1 from e as f where f.i = e.id)
select id from e where i in (select s16 from e where s16 is not null)
select id from e where i not in (select s16 from e)
select b, c from e order by b desc, c limit 5
select b, c, id from e order by all limit 5
select b, c, id from e order by all desc nulls last limit 5
select id as all, b, c from e order by all limit 5
select b, c from e order by b nulls last, c desc nulls first, id limit 3 offset 2
select id as x, x + 1 as y from e
select upper(p) as p, count(*) as n from e where id <> 11 group by upper(p) having count(*) > 0
select b, count(*) from e group by 1
select b, grouping(b) as g, count(*) from e group by rollup(b)
select distinct b from e
select o.a, o.b from e
select e.o.a as first, q['k'] as k from e
select * except (g, f, o, q) from e
select id, case when b then 'yes' when not b then 'no' end as said from e
select id, d + 1 as tomorrow, year(d), month(z), date_trunc('month', y) as m from e where id not in (4, 5)
select id, explode(l) as one from e
select t.id, x.one from e as t lateral view explode(l) x as one
select collect_list(i) from e
select array_agg(c) from e
select id, cast(i as string) || '-' || c as k from e
select percentile(i, 0.5) from e
select id from e tablesample (50 percent)
select count(*) filter (where b) as t, count(if(b, 1, null)), any_value(id) is null from e
select max_by(c, id), min_by(c, id) from e
select sum(f) is null, max(g), min(g) from e
select stddev(s8), variance(s8) from e
select id from e where id < 3 union select id from e where id < 5 intersect select id from e where id > 1
select id from e union all select id from e except select s8 from e
select count_if(b) as r from e where id > 100
select count_if(b) filter (where id > 100), b from e group by b
select id, -cast(i as bigint) as k from e order by -k limit 3
select id, c as p, p as c from e order by c || '', id limit 3
select id, i from e order by (1) desc limit 3
select count(*) from e semi join (select id from e where id > 3) f
select count(*) from e anti join (select id from e where id > 3) f
select count(*) from e left anti join (select id from e where id > 99) f
select count(*) from e left join (select id from e where id > 99) f
select id, d as a from e where id in (1, 2) union all select id, z from e where id in (1, 2)
select * from (select i, j as i from e union all select i, s16 from e) as t(a, b)
select id, i in (select i from e where id in (3, 4)) as r from e
select id from e where coalesce(i in (select i from e where id in (3, 4)), true)
select id from e where not (i in (select i from e where id in (4, 5)) or b)
select 1 as a, count(*) as n from e where id > 100 group by all
select b, count(*) as n from e group by all
select distinct -g as a from e
select -g as a, count(*) as n from e group by -g
select -g as a from e intersect select g from e
select -g as a, count(*) as n from e group by all
select i as s16, count(*) as n from e group by i, s16 having s16 > 3
select count(*) as n from e group by 1.5
select e.id from e |> limit 3 |> order by id desc |> limit 1
select id, x.c, y.p from e as x join e as y using (id)
select id, x.s8, y.s16 from e as x left join (select s8 as id, s16 from e) as y using (id)
select id, x.id as own, y.s16 from e as x right join (select s8 as id, s16 from e) as y using (id)
select id, x.id as own, y.id as other from e as x full join (select cast(j % 20 as bigint) as id from e) as y using (id)
select id, x.c from e as x join e as y using (id) join (select s16 as id, b from e) as z using (id) where z.b
select count(*), b from e as x join (select distinct b, c from e) as y using (b, c) group by b
select * from e as x join e as y using (id)
select id from e as x left anti join (select s8 as id from e) as y using (id)
select id, c from e as x semi join (select id, b from e where id < 8) as y using (id, b)
select id, c from e as x anti join (select id, b from e where id < 8) as y using (b, id)
select x.id, y.id as other from e as x, e as y right join e as z on x.id = z.id and y.id = z.id
""".strip().splitlines()


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with session_over(tmp_path_factory.mktemp("views"), spark_settings(tmp_path_factory)) as session:
        session.run(f"create table e as {ROWS}")
        yield session


def comparable(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, list | dict) and not value:
        return []
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    if isinstance(value, list | tuple):
        return [comparable(one) for one in value]
    if isinstance(value, dict):
        return {key: comparable(one) for key, one in value.items()}
    return value


@dataclass
class Both:
    """The rows of `e` in Spark's memory and in DuckDB's, whose session is in another zone."""

    spark: Spark
    duckdb: duckdb.DuckDBPyConnection
    columns: tuple[Column, ...]
    ids: tuple[int, ...]

    @classmethod
    def over(cls, spark: Spark) -> Both:
        rows = run_query(spark, ROWS)
        rows.createOrReplaceTempView("e")
        connection, columns = duckdb.connect(), columns_from(rows.schema)
        connection.execute("SET TimeZone = 'Asia/Tokyo'")
        table = rows.toArrow()
        connection.register("given", table)
        shown = ", ".join(f'CAST("{one.name}" AS {t.duckdb_type(one)}) AS "{one.name}"' for one in columns)
        connection.execute(f"CREATE TABLE e AS SELECT {shown} FROM given")
        return cls(spark, connection, columns, tuple(table.column("id").to_pylist()))

    def translated(self, sql: str) -> tuple[str, Column]:
        start = len(sql) - 1
        table = TableOf('"e"', tuple(Output(one.name, one) for one in self.columns))
        found, outputs = Query({start: table}, Zone("UTC")).translated(tree_of(sql))
        return found, outputs[1].type

    def in_spark(self, sql: str) -> dict[int, Any]:
        def rows(text: str) -> dict[int, Any]:
            return {row[0]: comparable(row[1]) for row in fetched(run_query(self.spark, text))}

        return self._by_row(lambda condition: rows(sql + condition))

    def in_duckdb(self, sql: str) -> dict[int, Any]:
        def rows(condition: str) -> dict[int, Any]:
            found = self.duckdb.execute(f"SELECT * FROM ({sql}){condition}").fetchall()
            return {row[0]: comparable(row[1]) for row in found}

        return self._by_row(rows)

    def _by_row(self, rows: Any) -> dict[int, Any]:
        """The values by their rows' ids, as far as they are not errors."""
        with suppress(PySparkException, duckdb.Error, OverflowError):
            return dict(rows(""))
        found = {}
        for id_ in self.ids:
            with suppress(PySparkException, duckdb.Error, OverflowError):
                found.update(rows(f" WHERE id = {id_}"))
        return found


def test_no_expression_has_another_value_in_duckdb(lakes: Session) -> None:
    kinds: Counter[str] = Counter()
    wrong = []
    with lakes.session.spark.job("views") as spark:
        both = Both.over(spark)
        for text in EXPRESSIONS:
            sql = f"SELECT id, {text} AS r FROM e"
            try:
                translated, kind = both.translated(sql)
            except Untranslatable:
                kinds["refused"] += 1
                continue
            try:
                wanted = columns_from(run_query(spark, sql).schema)[1]
            except (UnsupportedType, PySparkException):
                kinds["nothing that a view may have"] += 1
                continue
            here, there = both.in_spark(sql), both.in_duckdb(translated)
            own_type = both.duckdb.execute(f"DESCRIBE {translated}").fetchall()[1][1]
            meant = both.duckdb.execute(f"SELECT typeof(CAST(NULL AS {t.duckdb_type(wanted)}))").fetchall()[0][0]
            differs = {id_: (here.get(id_), value) for id_, value in there.items() if here.get(id_, "error") != value}
            if not t.same(kind, wanted) or own_type != meant or (differs and text not in PASSING):
                wrong.append((text, str(wanted.type), own_type, differs))
            kinds["same" if len(there) == len(here) else "fails there"] += 1
    assert not wrong, "\n".join(map(str, wrong))
    assert kinds["same"] >= 250
    assert kinds["fails there"] <= 25


def test_views_have_the_same_rows_for_duckdb(lakes: Session) -> None:
    kept = []
    for number, query in enumerate(QUERIES):
        with suppress(SparkRoomError, StatementError):
            lakes.run(f"create view v{number} as {query}")
            kept.append(number)
    names = [*(f"v{number}" for number in kept), *(f"w{number}" for number in kept)]
    lakes.run(*(f"create view w{number} as select * from v{number}" for number in kept))
    here = {name: shown(lakes.run(f"select * from {name}")) for name in names}
    only_here = {text.split()[1].split(".")[-1] for text in lakes.warnings if "is for Spark only" in text}
    with lakes.judge() as judge:
        wrong = {}
        for name in names:
            if name in only_here:
                with pytest.raises(duckdb.Error, match="Read it with Spark"):
                    judge.rows(f"SELECT * FROM {name}")
                continue
            there = shown(judge.rows(f"SELECT * FROM {name}"))
            if there != here[name]:
                wrong[QUERIES[int(name[1:])]] = (here[name][:3], there[:3])
    assert wrong == {}
    assert len(kept) > 35
    assert len(names) - len(only_here) >= 50


def shown(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(repr([comparable(value) for value in row]) for row in rows)
