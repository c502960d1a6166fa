"""A model's settings as frozen values, checked, and the clauses of CREATE TABLE that say them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.lake import fold
from dbt.adapters.ducklake.spark.schema import string_literal
from dbt.adapters.ducklake.statements.clauses import read_partitioning, read_sorting
from dbt.adapters.ducklake.statements.errors import StatementError
from dbt.adapters.ducklake.statements.names import quoted
from dbt.adapters.ducklake.statements.reader import Reader


@dataclass(frozen=True)
class ModelColumn:
    """What a model's YAML says of a column. `type` is None where nothing enforces one."""

    name: str
    type: str | None = None
    not_null: bool = False
    comment: str | None = None

    def clause(self) -> str:
        parts = [quoted(self.name), self.type, "NOT NULL" if self.not_null else None]
        parts.append(f"COMMENT {string_literal(self.comment)}" if self.comment else None)
        return " ".join(part for part in parts if part)

    @property
    def says_something(self) -> bool:
        return bool(self.type or self.not_null or self.comment)


@dataclass(frozen=True)
class ModelConfig:
    columns: tuple[ModelColumn, ...] = ()
    comment: str | None = None
    partitioned_by: str | None = None
    sorted_by: str | None = None
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, model: Mapping[str, Any]) -> ModelConfig:
        """The settings of a node as dbt's context has it. DbtRuntimeError says which setting is wrong, and how."""
        config = model.get("config") or {}
        _refuse_other_formats(config)
        docs = _persisted(config)
        return cls(
            columns=_columns(model, config, docs),
            comment=_text(model.get("description")) if docs.get("relation") else None,
            # dbt-spark's and dbt-databricks' word, too.
            partitioned_by=_keys(config, "partitioned_by", read_partitioning)
            or _keys(config, "partition_by", read_partitioning),
            sorted_by=_keys(config, "sorted_by", read_sorting),
            options=_options(config),
        )

    def table_clauses(self) -> str:
        """All that stands between a table's name and AS."""
        parts = []
        said = [column.clause() for column in self.columns if column.says_something]
        if said:
            parts.append(f"({', '.join(said)})")
        if self.comment:
            parts.append(f"COMMENT {string_literal(self.comment)}")
        if self.partitioned_by:
            parts.append(f"PARTITIONED BY ({self.partitioned_by})")
        if self.sorted_by:
            parts.append(f"SORTED BY ({self.sorted_by})")
        if self.options:
            pairs = (f"{string_literal(key)} = {string_literal(value)}" for key, value in self.options)
            parts.append(f"TBLPROPERTIES ({', '.join(pairs)})")
        return " ".join(parts)

    def view_clauses(self) -> str:
        """All that stands between a view's name and AS."""
        parts = [f"COMMENT {string_literal(self.comment)}"] if self.comment else []
        said = [f"{quoted(one.name)} {string_literal(one.comment)}" for one in self.columns if one.comment]
        if said:
            parts.append(f"COMMENT ON COLUMN ({', '.join(said)})")
        return " ".join(parts)


# Settings of other adapters that would say something here that is not so; with what says it.
_OTHERS = {
    "location_root": "A table lies below its lake's data path: leave it out.",
    "clustered_by": "Use `partitioned_by` with bucket(N, column), or `sorted_by`.",
    "buckets": "Use `partitioned_by` with bucket(N, column).",
    "liquid_clustered_by": "Use `partitioned_by` or `sorted_by`.",
    "tblproperties": "DuckLake's options are given by `table_options`.",
    "options": "DuckLake's options are given by `table_options`.",
}


def _refuse_other_formats(config: Mapping[str, Any]) -> None:
    kind = config.get("file_format")
    if kind and fold(str(kind)) != "ducklake":
        raise DbtRuntimeError(f"`file_format` is {kind}. Tables of a lake are DuckLake tables: leave it out.")
    for setting, remedy in _OTHERS.items():
        if config.get(setting):
            raise DbtRuntimeError(f"`{setting}` is set, which tables of a lake do not know. {remedy}")


def _persisted(config: Mapping[str, Any]) -> Mapping[str, Any]:
    docs = config.get("persist_docs") or {}
    if not isinstance(docs, Mapping):
        raise DbtRuntimeError(f"`persist_docs` is {docs!r}. It takes `relation` and `columns`, each true or false.")
    return docs


def _columns(model: Mapping[str, Any], config: Mapping[str, Any], docs: Mapping[str, Any]) -> tuple[ModelColumn, ...]:
    enforced = bool((config.get("contract") or {}).get("enforced"))
    of_model = {
        fold(str(name))
        for constraint in model.get("constraints") or []
        if _kind(constraint) == "not_null"
        for name in _columns_of(constraint)
    }
    found = []
    for column in (model.get("columns") or {}).values():
        constraints = column.get("constraints") or []
        is_not_null = any(_kind(constraint) == "not_null" for constraint in constraints)
        not_null = enforced and (is_not_null or fold(column["name"]) in of_model)
        comment = _text(column.get("description")) if docs.get("columns") else None
        kind = column.get("data_type") if enforced else None
        found.append(ModelColumn(column["name"], kind, not_null, comment))
    return tuple(found)


def _kind(constraint: Any) -> str:
    kind = constraint.get("type") if isinstance(constraint, Mapping) else getattr(constraint, "type", "")
    return str(getattr(kind, "value", kind))


def _columns_of(constraint: Any) -> Sequence[str]:
    given = constraint.get("columns") if isinstance(constraint, Mapping) else getattr(constraint, "columns", None)
    return list(given or [])


def _text(description: object) -> str | None:
    return str(description) if description else None


def _keys(config: Mapping[str, Any], name: str, read: Any) -> str | None:
    """A list of keys, or one, as the clause takes them; whether it does is seen now and not in a statement."""
    given = config.get(name)
    if given is None or given == []:
        return None
    keys = [given] if isinstance(given, str) else given
    if not isinstance(keys, Sequence) or not all(isinstance(key, str) and key for key in keys):
        raise DbtRuntimeError(
            f"`{name}` is {given!r}. It takes a column or a list of columns, such as year(ordered_at)."
        )
    text = ", ".join(keys)
    try:
        reader = Reader(f"({text})")
        read(reader)
        reader.finish()
    except StatementError as error:
        raise DbtRuntimeError(f"`{name}` is {given!r}. {error.text}") from error
    return text


def _options(config: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    given = config.get("table_options") or {}
    if not isinstance(given, Mapping):
        raise DbtRuntimeError(f"`table_options` is {given!r}. It takes DuckLake's options by name.")
    return tuple((fold(str(key)), str(value)) for key, value in given.items())
