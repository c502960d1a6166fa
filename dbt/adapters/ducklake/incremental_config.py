"""An incremental model's settings as frozen values, checked, and the clauses of the statement they come to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.lake import fold
from dbt.adapters.ducklake.model_config import ModelConfig
from dbt.adapters.ducklake.spark.schema import quoted, string_literal
from dbt.adapters.ducklake.statements.errors import StatementError
from dbt.adapters.ducklake.statements.reader import Reader, without_semicolon

STRATEGIES = ("append", "merge", "delete+insert", "insert_overwrite", "microbatch")
_OF_EXPRESSIONS = frozenset("()|:'+*/")
_QUOTED = re.compile(r'`(?:[^`]|``)*`|"(?:[^"]|"")*"')
# Between commas; as a name needs no quotes here, it may have spaces and other signs.
_QUOTED_OR_PLAIN = re.compile(rf"\s*(?:{_QUOTED.pattern})\s*|[^,]+")
_TARGET, _SOURCE = "DBT_INTERNAL_DEST", "DBT_INTERNAL_SOURCE"


class Key(NamedTuple):
    """A part of a model's `unique_key`: a column, or an expression (`column` None)."""

    text: str
    column: str | None


@dataclass(frozen=True)
class IncrementalConfig:
    """`columns` are those that the batch and the table both have."""

    name: str
    keys: tuple[Key, ...] = ()
    null_safe_keys: bool = False
    predicates: tuple[str, ...] = ()
    update_columns: tuple[str, ...] = ()
    exclude_columns: tuple[str, ...] = ()
    matched_condition: str | None = None
    not_matched_condition: str | None = None
    not_matched_by_source_action: str | None = None
    not_matched_by_source_condition: str | None = None
    skip_matched_step: bool = False
    skip_not_matched_step: bool = False
    target_alias: str = _TARGET
    source_alias: str = _SOURCE

    @classmethod
    def of(cls, model: Mapping[str, Any]) -> IncrementalConfig:
        """The settings of a model as dbt's context has it. DbtRuntimeError says which is wrong."""
        config = model.get("config") or {}
        name = str(model.get("name"))
        found = cls(
            name=name,
            keys=keys_of_config(config),
            null_safe_keys=bool(config.get("null_safe_keys")),
            predicates=_names(config, "incremental_predicates") or _names(config, "predicates"),
            update_columns=_names(config, "merge_update_columns"),
            exclude_columns=_names(config, "merge_exclude_columns"),
            matched_condition=_text(config, "matched_condition"),
            not_matched_condition=_text(config, "not_matched_condition"),
            not_matched_by_source_action=_text(config, "not_matched_by_source_action"),
            not_matched_by_source_condition=_text(config, "not_matched_by_source_condition"),
            skip_matched_step=bool(config.get("skip_matched_step")),
            skip_not_matched_step=bool(config.get("skip_not_matched_step")),
            target_alias=_text(config, "target_alias") or _TARGET,
            source_alias=_text(config, "source_alias") or _SOURCE,
        )
        if found.update_columns and found.exclude_columns:
            raise DbtRuntimeError(
                f"Model {name} has both `merge_update_columns` and `merge_exclude_columns`. Give one of them."
            )
        return found

    def known_keys(self, columns: Sequence[str]) -> tuple[Key, ...]:
        """The parts of the key; a text that could be an expression is a column if there is one of that name."""
        known = set(map(fold, columns))
        return tuple(key._replace(column=key.text) if fold(key.text) in known else key for key in self.keys)

    def key_columns(self, columns: Sequence[str]) -> list[str]:
        """The columns of the key. DbtRuntimeError if a part of it is an expression."""
        keys = self.known_keys(columns)
        if expression := next((key.text for key in keys if key.column is None), None):
            raise DbtRuntimeError(
                f"Model {self.name} has the `unique_key` {expression}, and a merge goes by columns. Give the "
                "expression a name in the query and set that, or use the `incremental_strategy` delete+insert."
            )
        return [key.column for key in keys if key.column]

    def merge(self, target: object, batch: object, columns: Sequence[str]) -> str:
        """MERGE INTO for these columns; without a key every row of the batch is new."""
        condition = " AND ".join([*self._keys_match(columns), *(f"({text})" for text in self.predicates)])
        whens = [*self._matched(columns), *self._not_matched(columns), *self._not_matched_by_source()]
        if not whens:
            raise DbtRuntimeError(f"Model {self.name} skips every step of its merge. Leave one.")
        lines = [
            f"MERGE INTO {target} AS {quoted(self.target_alias)}",
            f"USING {batch} AS {quoted(self.source_alias)}",
            f"ON {condition}",
        ]
        return "\n".join([*lines, *whens])

    def replace(self, target: object, batch: object, columns: Sequence[str]) -> str:
        """INSERT INTO ... REPLACE: the rows with a key that comes again go as the batch comes."""
        if not self.keys:
            raise DbtRuntimeError(
                f"Model {self.name} has the `incremental_strategy` delete+insert and no `unique_key`. Say by which "
                "columns rows are replaced."
            )
        if self.null_safe_keys:
            raise DbtRuntimeError(
                f"Model {self.name} has `null_safe_keys` with the `incremental_strategy` delete+insert, where NULL "
                "keys are never equal. Use merge, or give NULL keys a value."
            )
        known = self.known_keys(columns)
        self._check_known(columns, [key.column for key in known if key.column], "unique_key")
        names = ", ".join(map(quoted, columns))
        keys = ", ".join(quoted(key.column) if key.column else key.text for key in known)
        where = f" WHERE {' AND '.join(f'({text})' for text in self.predicates)}" if self.predicates else ""
        into = f"{target} AS {quoted(self.target_alias)}"
        return f"INSERT INTO {into} ({names}) REPLACE USING ({keys}){where}\nSELECT {names} FROM {batch}"

    def _keys_match(self, columns: Sequence[str]) -> list[str]:
        keys = self.key_columns(columns)
        self._check_known(columns, keys, "unique_key")
        equal = "<=>" if self.null_safe_keys else "="
        pairs = [f"{self._own(key)} {equal} {self._given(key)}" for key in keys]
        return pairs or ["FALSE"]

    def _matched(self, columns: Sequence[str]) -> list[str]:
        if self.skip_matched_step or not self.keys:
            return []
        self._check_known(columns, self.update_columns, "merge_update_columns")
        self._check_known(columns, self.exclude_columns, "merge_exclude_columns")
        excluded = set(map(fold, self.exclude_columns))
        chosen = self.update_columns or [name for name in columns if fold(name) not in excluded]
        assigned = ", ".join(f"{quoted(name)} = {self._given(name)}" for name in chosen)
        condition = f" AND ({self.matched_condition})" if self.matched_condition else ""
        return [f"WHEN MATCHED{condition} THEN UPDATE SET {assigned}"] if assigned else []

    def _not_matched(self, columns: Sequence[str]) -> list[str]:
        if self.skip_not_matched_step:
            return []
        condition = f" AND ({self.not_matched_condition})" if self.not_matched_condition else ""
        names, values = ", ".join(map(quoted, columns)), ", ".join(map(self._given, columns))
        return [f"WHEN NOT MATCHED{condition} THEN INSERT ({names}) VALUES ({values})"]

    def _not_matched_by_source(self) -> list[str]:
        action = self.not_matched_by_source_action
        if not action:
            return []
        condition = f" AND ({self.not_matched_by_source_condition})" if self.not_matched_by_source_condition else ""
        return [f"WHEN NOT MATCHED BY SOURCE{condition} THEN {action}"]

    def _own(self, name: str) -> str:
        return f"{quoted(self.target_alias)}.{quoted(name)}"

    def _given(self, name: str) -> str:
        return f"{quoted(self.source_alias)}.{quoted(name)}"

    def _check_known(self, columns: Sequence[str], names: Sequence[str], setting: str) -> None:
        known = set(map(fold, columns))
        if unknown := [name for name in names if fold(name) not in known]:
            raise DbtRuntimeError(
                f"Model {self.name} has `{setting}` {unknown[0]}, which is no column of both its query and its table. "
                f"Columns are: {', '.join(columns)}."
            )


def check_incremental(model: Mapping[str, Any]) -> None:
    """Refuse settings that the first build does not need and the second would fail by."""
    config = model.get("config") or {}
    if config.get("materialized") != "incremental":
        return
    found = IncrementalConfig.of(model)
    strategy = config.get("incremental_strategy") or ("merge" if found.keys else "append")
    if strategy == "merge" and any("(" in key.text for key in found.keys if key.column is None):
        found.key_columns([])
    if strategy == "delete+insert" and not found.keys:
        found.replace("", "", [])


def statement_of(strategy: str, model: Mapping[str, Any], target: object, batch: object, columns: Sequence[str]) -> str:
    """The one statement that brings a batch into a model's table."""
    if strategy == "merge":
        return IncrementalConfig.of(model).merge(target, batch, columns)
    if strategy == "delete+insert":
        return IncrementalConfig.of(model).replace(target, batch, columns)
    names = ", ".join(map(quoted, columns))
    rows = f"({names}){_replaced_time(model) if strategy == 'microbatch' else ''}\nSELECT {names} FROM {batch}"
    if strategy == "insert_overwrite":
        # Of a partitioned model the partitions that have new rows, else all.
        keys = ModelConfig.of(model).partitioned_by
        return f"INSERT OVERWRITE {target}{f' PARTITION ({keys})' if keys else ''} {rows}"
    return f"INSERT INTO {target} {rows}"


def batch_condition(model: Mapping[str, Any]) -> tuple[str, str] | None:
    """What is true of the rows of a microbatch, and the error of a batch that has others; None of other models.

    Rows of another time would neither go when their batch runs again nor stay when that of their time does.
    """
    is_batch = (model.get("config") or {}).get("incremental_strategy") == "microbatch"
    return _of_batch(model) if is_batch else None


def _of_batch(model: Mapping[str, Any]) -> tuple[str, str]:
    config = model.get("config") or {}
    start, end = (config.get(f"__dbt_internal_microbatch_event_time_{side}") for side in ("start", "end"))
    time = config.get("event_time")
    if not time or not start or not end:
        raise DbtRuntimeError(
            f"Model {model.get('name')} has the `incremental_strategy` microbatch and no batch. It needs `event_time`, "
            "`batch_size` and `begin`."
        )
    text = (
        f"Model {model.get('name')} gives its batch from {start} to {end} rows with another {time}, or without one. "
        "They would be there twice after another run of the batch. Leave them out, or set `event_time` to a column "
        "that the model passes on as it is."
    )
    return f"{time} >= '{start}' AND {time} < '{end}'", text


def checked_batch(model: Mapping[str, Any], sql: str) -> str:
    """The query of a model's batch, which fails if it has rows of another time."""
    within = batch_condition(model)
    if within is None:
        return sql
    condition, text = within
    refusal = f"raise_error({string_literal(text)})"
    return f"SELECT * FROM ({without_semicolon(sql)}\n) WHERE CASE WHEN {condition} THEN TRUE ELSE {refusal} END"


def _replaced_time(model: Mapping[str, Any]) -> str:
    """The clause for the rows of the batch's time, which go as the batch comes."""
    condition, _ = _of_batch(model)
    config = model.get("config") or {}
    predicates = _names(config, "incremental_predicates") or _names(config, "predicates")
    more = "".join(f" AND ({text})" for text in predicates)
    return f" REPLACE WHERE {condition}{more}"


def keys_of_config(config: Mapping[str, Any]) -> tuple[Key, ...]:
    """The parts of `unique_key`: columns and expressions, in a list or with commas between."""
    return tuple(key for text in _names(config, "unique_key") for key in _keys_in(text))


def _keys_in(text: str) -> Iterator[Key]:
    parts = _QUOTED_OR_PLAIN.findall(text) if not set(_QUOTED.sub("", text)) & _OF_EXPRESSIONS else _expressions(text)
    for part in map(str.strip, parts):
        is_name = bool(_QUOTED.fullmatch(part)) or not set(part) & _OF_EXPRESSIONS
        yield Key(part, _unquoted(part) if is_name else None)


def _expressions(text: str) -> Sequence[str]:
    try:
        reader = Reader(text)
        parts = reader.many(lambda: reader.text_until(","))
        reader.finish()
    except StatementError:
        # No expression, so at most a name; the columns will show.
        return [text]
    return parts


def _unquoted(name: str) -> str:
    if not _QUOTED.fullmatch(name):
        return name
    return name[1:-1].replace(name[0] * 2, name[0])


def _names(config: Mapping[str, Any], setting: str) -> tuple[str, ...]:
    given = config.get(setting)
    if not given:
        return ()
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) and name.strip() for name in names):
        raise DbtRuntimeError(f"`{setting}` is {given!r}. It takes a text or a list of texts.")
    is_text = "predicates" in setting or setting == "unique_key"
    return tuple(name if is_text else name.strip().strip("`") for name in names)


def _text(config: Mapping[str, Any], setting: str) -> str | None:
    given = config.get(setting)
    if given is None or given == "":
        return None
    if not isinstance(given, str):
        raise DbtRuntimeError(f"`{setting}` is {given!r}. It takes a text of SQL.")
    return given
