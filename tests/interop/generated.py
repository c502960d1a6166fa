"""Lakes made by the extension from a seed: what its users do to lakes, in random order."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

import duckdb

from tests.judge import Judge

SCALARS = {
    "BIGINT": "{0}", "INTEGER": "{0}", "SMALLINT": "{0} % 100", "UTINYINT": "abs({0}) % 200", "UBIGINT": "abs({0})",
    "HUGEINT": "{0} * 1000003", "DOUBLE": "{0} / 4.0", "FLOAT": "{0} / 8.0", "DECIMAL(18,3)": "{0} / 8.0",
    "VARCHAR": "'s' || {0}", "BLOB": "encode('b' || {0})", "BOOLEAN": "{0} % 2 = 0",
    "DATE": "DATE '1990-01-01' + ({0} * 40)::INT", "TIME": "TIME '00:00:00' + INTERVAL (abs({0}) % 80000) SECOND",
    "TIMESTAMP": "TIMESTAMP '2001-01-01' + INTERVAL ({0} * 7) HOUR",
    "TIMESTAMPTZ": "TIMESTAMPTZ '2001-01-01 00:00:00+00' + INTERVAL ({0} * 7) HOUR",
    "TIMESTAMP_MS": "(TIMESTAMP '2001-01-01' + INTERVAL ({0} * 7) HOUR)::TIMESTAMP_MS",
    "TIMESTAMP_S": "(TIMESTAMP '2001-01-01' + INTERVAL ({0} * 7) HOUR)::TIMESTAMP_S",
    "TIMESTAMP_NS": "(TIMESTAMP '2001-01-01' + INTERVAL ({0} * 7) HOUR)::TIMESTAMP_NS",
    "UUID": "md5('u' || {0})::UUID", "INTERVAL": "INTERVAL ({0}) MONTH + INTERVAL ({0}) SECOND",
    "JSON": "('{{\"a\": ' || {0} || '}}')::JSON",
}  # fmt: skip
NESTED = {
    "INTEGER[]": "[{0}, NULL, {0} + 1]",
    "VARCHAR[]": "['a' || {0}, NULL, 'b, c']",
    "STRUCT(p BIGINT, q VARCHAR)": "{{'p': {0}, 'q': 'z' || {0}}}",
    "STRUCT(p INTEGER, q STRUCT(r DOUBLE))[]": "[{{'p': {0}, 'q': {{'r': {0} / 2.0}}}}, NULL]",
    "MAP(VARCHAR, INTEGER)": "MAP {{'k' || {0}: {0}, 'l': NULL}}",
}
WIDER = {"INTEGER": "BIGINT", "SMALLINT": "INTEGER", "UTINYINT": "SMALLINT", "DECIMAL(18,3)": "DECIMAL(22,4)"}
WIDER |= {"DATE": "TIMESTAMP", "TIMESTAMP_S": "TIMESTAMP", "TIMESTAMP_MS": "TIMESTAMP", "BOOLEAN": "INTEGER"}
SPECIAL = {
    "DOUBLE": ["'NaN'", "'-inf'", "1e300", "-0.0"], "FLOAT": ["'NaN'", "'inf'"], "VARCHAR": ["''", "'é\"ü'", "'NULL'"],
    "DATE": ["'infinity'", "'0044-03-15 (BC)'", "'9999-12-31'"],
    "TIMESTAMP": ["'-infinity'", "'1900-01-01 00:00:00.5'"],
    "BIGINT": ["9223372036854775807"],
    "BLOB": ["'\\x00\\xFF'::BLOB", "''::BLOB"], "TIMESTAMPTZ": ["'infinity'"],
}  # fmt: skip


# Types that Spark does not write for DuckDB.
NOT_WRITTEN = ("INTERVAL", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")


class Generator:
    """Runs random statements on an attached lake. What the extension refuses is passed over."""

    def __init__(self, seed: int, judge: Judge, kind: str, without: tuple[str, ...] = ()) -> None:
        self.random = random.Random(seed)
        self.judge, self.kind, self.without = judge, kind, without
        self.ran: list[str] = []
        self.tables: dict[str, list[tuple[str, str]]] = {}
        self._names = iter(range(10_000))
        self._next = 0

    def run(self, steps: int) -> None:
        self._create_table()
        for _ in range(steps):
            step = self.random.choices([step for step, _ in STEPS], weights=[weight for _, weight in STEPS])[0]
            if step.__name__ not in self.without:
                step(self)

    def _try(self, *statements: str) -> bool:
        """All of the statements as one transaction."""
        try:
            if len(statements) > 1:
                self.judge.run("BEGIN")
            self.judge.run(*statements)
            if len(statements) > 1:
                self.judge.run("COMMIT")
        except duckdb.FatalException:
            raise
        except duckdb.Error:
            if len(statements) > 1:
                with suppress(duckdb.TransactionException):
                    self.judge.run("ROLLBACK")
            return False
        self.ran += statements
        return True

    def _table(self) -> str:
        if not self.tables:
            self._create_table()
        return self.random.choice(sorted(self.tables))

    def _type(self) -> str:
        choices = list(SCALARS) if self.random.random() < 0.75 else list(NESTED)
        return self.random.choice([kind for kind in choices if kind not in self.without])

    def _value(self, type_: str, seed: str) -> str:
        chance = self.random.random()
        if chance < 0.1:
            return "NULL"
        if chance < 0.2 and type_ in SPECIAL:
            return f"CAST({self.random.choice(SPECIAL[type_])} AS {type_})"
        return f"CAST({(SCALARS | NESTED)[type_].format(seed)} AS {type_})"

    def _create_table(self) -> None:
        name = f"t{next(self._names)}"
        schema = "main"
        if self.random.random() < 0.2:
            schema = f"s{next(self._names)}"
            if not self._try(f"CREATE SCHEMA {schema}"):
                return
        columns = [("id", "BIGINT")] + [
            (f"c{next(self._names)}", self._type()) for _ in range(self.random.randint(1, 5))
        ]
        shown = ", ".join(f"{column} {type_}" for column, type_ in columns)
        statements = [f"CREATE TABLE {schema}.{name} ({shown})"]
        if self._try(*statements):
            self.tables[f"{schema}.{name}"] = columns
            if self.random.random() < 0.3:
                self._partition(f"{schema}.{name}")

    def _partition(self, table: str | None = None) -> None:
        table = table or self._table()
        keys = []
        for column, type_ in self.random.sample(self.tables[table], min(2, len(self.tables[table]))):
            if type_ in ("DATE", "TIMESTAMP"):
                keys.append(f"{self.random.choice(['year', 'month', 'day'])}({column})")
            elif type_ in ("BIGINT", "VARCHAR", "INTEGER"):
                keys.append(self.random.choice([f"bucket(3, {column})", f"bucket(2, {column})"]))
            elif type_ == "BOOLEAN":
                keys.append(column)
        if keys:
            self._try(f"ALTER TABLE {table} SET PARTITIONED BY ({', '.join(keys)})")

    def _reset_partition(self) -> None:
        self._try(f"ALTER TABLE {self._table()} RESET PARTITIONED BY")

    def _rows(self, table: str, count: int) -> str:
        start, self._next = self._next, self._next + count
        values = ", ".join("i" if name == "id" else self._value(type_, "i") for name, type_ in self.tables[table])
        return f"SELECT {values} FROM range({start}, {start + count}) r(i)"

    def _insert(self) -> None:
        table = self._table()
        count = self.random.choice([1, 2, 5, 30, 200])
        self._try(f"INSERT INTO {table} {self._rows(table, count)}")

    def _insert_defaults(self) -> None:
        self._try(f"INSERT INTO {self._table()} (id) VALUES ({self._next})")

    def _delete(self) -> None:
        share = self.random.choice([2, 3, 7, 20])
        self._try(f"DELETE FROM {self._table()} WHERE id % {share} = {self.random.randrange(share)}")

    def _update(self) -> None:
        table, share = self._table(), self.random.choice([2, 5, 30])
        name, type_ = self.random.choice(self.tables[table][1:] or self.tables[table])
        value = self._value(type_, "id")
        self._try(f"UPDATE {table} SET {name} = {value} WHERE id % {share} = {self.random.randrange(share)}")

    def _merge(self) -> None:
        table = self._table()
        names = ", ".join(name for name, _ in self.tables[table])
        low = self.random.randint(0, max(self._next, 1))
        source = f"SELECT * FROM ({self._rows(table, 20)}) AS v({names}) UNION ALL "
        source += f"SELECT * FROM ({self._again(table, low)}) AS v({names})"
        sets = ", ".join(f"{name} = s.{name}" for name, _ in self.tables[table][1:]) or "id = s.id"
        values = ", ".join(f"s.{name}" for name, _ in self.tables[table])
        self._try(
            f"MERGE INTO {table} AS t USING ({source}) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET {sets} "
            f"WHEN NOT MATCHED THEN INSERT VALUES ({values})"
        )

    def _again(self, table: str, low: int) -> str:
        values = ", ".join("i" if name == "id" else self._value(type_, "i + 1") for name, type_ in self.tables[table])
        return f"SELECT {values} FROM range({low}, {low + 5}) r(i)"

    def _truncate(self) -> None:
        self._try(f"TRUNCATE {self._table()}")

    def _two_at_once(self) -> None:
        one, other = self._table(), self._table()
        self._try(
            f"INSERT INTO {one} {self._rows(one, 15)}", f"DELETE FROM {other} WHERE id % 5 = {self.random.randrange(5)}"
        )

    def _add_column(self) -> None:
        table, type_ = self._table(), self._type()
        name = f"c{next(self._names)}"
        default = ""
        if type_ in ("BIGINT", "VARCHAR", "DATE", "DOUBLE") and self.random.random() < 0.6:
            literal = {"BIGINT": "42", "VARCHAR": "'it''s'", "DATE": "'2020-02-29'", "DOUBLE": "'2.5'"}[type_]
            default = f" DEFAULT {literal}"
        if self._try(f"ALTER TABLE {table} ADD COLUMN {name} {type_}{default}"):
            self.tables[table].append((name, type_))

    def _drop_column(self) -> None:
        table = self._table()
        if len(self.tables[table]) > 2:
            place = self.random.randrange(1, len(self.tables[table]))
            if self._try(f"ALTER TABLE {table} DROP COLUMN {self.tables[table][place][0]}"):
                del self.tables[table][place]

    def _rename_column(self) -> None:
        table = self._table()
        place = self.random.randrange(len(self.tables[table]))
        name, type_ = self.tables[table][place]
        if name != "id" and self._try(f"ALTER TABLE {table} RENAME COLUMN {name} TO {name}x"):
            self.tables[table][place] = (f"{name}x", type_)

    def _widen(self) -> None:
        table = self._table()
        for place, (name, type_) in enumerate(self.tables[table]):
            if type_ in WIDER and self._try(f"ALTER TABLE {table} ALTER COLUMN {name} SET TYPE {WIDER[type_]}"):
                wider = WIDER[type_]
                if wider in SCALARS:
                    self.tables[table][place] = (name, wider)
                else:
                    del self.tables[table][place]
                    self._try(f"ALTER TABLE {table} DROP COLUMN {name}")
                return

    def _change_struct(self) -> None:
        table = self._table()
        structs = [name for name, type_ in self.tables[table] if type_ == "STRUCT(p BIGINT, q VARCHAR)"]
        if structs:
            what = self.random.choice(["ADD COLUMN {0}.n INTEGER", "RENAME COLUMN {0}.q TO r", "DROP COLUMN {0}.q"])
            if self._try(f"ALTER TABLE {table} {what.format(structs[0])}"):
                self.tables[table] = [entry for entry in self.tables[table] if entry[0] != structs[0]]

    def _rename_table(self) -> None:
        table = self._table()
        schema = table.split(".")[0]
        name = f"t{next(self._names)}"
        if self._try(f"ALTER TABLE {table} RENAME TO {name}"):
            self.tables[f"{schema}.{name}"] = self.tables.pop(table)

    def _replace_table(self) -> None:
        table = self._table()
        names = ", ".join(name for name, _ in self.tables[table])
        self._try(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM ({self._rows(table, 12)}) AS v({names})")

    def _drop_table(self) -> None:
        if len(self.tables) > 1:
            table = self._table()
            if self._try(f"DROP TABLE {table}"):
                del self.tables[table]

    def _comment(self) -> None:
        table = self._table()
        self._try(f"COMMENT ON TABLE {table} IS 'about {self._next}'")
        self._try(f"COMMENT ON COLUMN {table}.id IS 'key {self._next}'")

    def _view(self) -> None:
        self._try(f"CREATE VIEW v{next(self._names)} AS SELECT id FROM {self._table()}")

    def _inlining(self) -> None:
        # For a lake that holds a view this would crash DuckDB, so tables only.
        table = self._table()
        schema, name = table.split(".")
        limit = self.random.choice([0, 3, 50])
        self._try(
            f"CALL lake.set_option('data_inlining_row_limit', {limit}, schema => '{schema}', table_name => '{name}')"
        )

    def _maintain(self) -> None:
        self._try(
            self.random.choice(
                [
                    "CALL ducklake_merge_adjacent_files('lake')",
                    "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.1)",
                    "CALL ducklake_flush_inlined_data('lake')",
                ]
            )
        )

    def _expire(self) -> None:
        oldest, latest = self.judge.rows("SELECT min(snapshot_id), max(snapshot_id) FROM lake.snapshots()")[0]
        if latest - oldest > 4:
            versions = ", ".join(map(str, self.random.sample(range(oldest, latest), 2)))
            self._try(f"CALL ducklake_expire_snapshots('lake', versions => [{versions}])")
            self._try("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")


STEPS: list[tuple[Callable[[Generator], None], int]] = [
    (Generator._insert, 30),
    (Generator._insert_defaults, 3),
    (Generator._delete, 14),
    (Generator._update, 10),
    (Generator._merge, 6),
    (Generator._truncate, 2),
    (Generator._two_at_once, 4),
    (Generator._create_table, 5),
    (Generator._add_column, 6),
    (Generator._drop_column, 3),
    (Generator._rename_column, 4),
    (Generator._widen, 4),
    (Generator._change_struct, 4),
    (Generator._rename_table, 2),
    (Generator._replace_table, 2),
    (Generator._drop_table, 2),
    (Generator._comment, 2),
    (Generator._view, 1),
    (Generator._partition, 2),
    (Generator._reset_partition, 1),
    (Generator._inlining, 3),
    (Generator._maintain, 8),
    (Generator._expire, 2),
]
