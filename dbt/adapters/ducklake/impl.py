"""DuckLakeAdapter: what dbt may count on, and short methods that call a room."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import BaseRelation, ConstraintSupport, available
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake import metadata
from dbt.adapters.ducklake.column import DuckLakeColumn
from dbt.adapters.ducklake.connections import DuckLakeConnectionManager
from dbt.adapters.ducklake.contracts import named_alike, spark_type_of, warn_of_lengths
from dbt.adapters.ducklake.fixtures import fixture_value
from dbt.adapters.ducklake.incremental_config import STRATEGIES, check_incremental, checked_batch, statement_of
from dbt.adapters.ducklake.lake import Table, fold
from dbt.adapters.ducklake.model_config import ModelConfig
from dbt.adapters.ducklake.operations import LakeOperations
from dbt.adapters.ducklake.prepared import make_class_archive
from dbt.adapters.ducklake.python_models import run_python_model, show_python_model
from dbt.adapters.ducklake.relation import DuckLakeRelation
from dbt.adapters.ducklake.schema_changes import compared, schema_changes, snapshot_changes
from dbt.adapters.ducklake.seeds import load_seed
from dbt.adapters.ducklake.spark.java import check_java
from dbt.adapters.ducklake.spark.schema import quoted
from dbt.adapters.ducklake.spark.storage import check_data_path
from dbt.adapters.ducklake.statements.kinds.alter_table import AlterTable, RenameTo, run_alter
from dbt.adapters.ducklake.statements.kinds.comment import follow_comments
from dbt.adapters.ducklake.statements.kinds.drop import Drop, Truncate, run_drop, run_truncate
from dbt.adapters.ducklake.statements.kinds.schema import CreateSchema, run_create_schema
from dbt.adapters.ducklake.statements.kinds.view import CreateView, run_create_view
from dbt.adapters.ducklake.statements.moment import literal
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Name
from dbt.adapters.ducklake.statements.session import LakeSession
from dbt.adapters.ducklake.statements.staged import stage, table_as_staged
from dbt.adapters.ducklake.statements.writing import commit_staged

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("DuckLake")
_NOT_NULL_ONLY = dict.fromkeys(ConstraintType, ConstraintSupport.NOT_ENFORCED) | {
    ConstraintType.not_null: ConstraintSupport.ENFORCED
}


class DuckLakeAdapter(LakeOperations):
    Relation = DuckLakeRelation
    Column = DuckLakeColumn
    ConnectionManager = DuckLakeConnectionManager
    CONSTRAINT_SUPPORT = _NOT_NULL_ONLY
    _capabilities = CapabilityDict(
        {
            Capability.SchemaMetadataByRelations: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadata: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadataBatch: CapabilitySupport(support=Support.Full),
            Capability.MicrobatchConcurrency: CapabilitySupport(support=Support.Full),
        }
    )

    @classmethod
    def date_function(cls) -> str:
        return "current_timestamp()"

    @classmethod
    def is_cancelable(cls) -> bool:
        return True

    @classmethod
    def quote(cls, identifier: str) -> str:
        return quoted(identifier)

    @available
    def cache_added(self, relation: BaseRelation | None) -> str:
        """A relation that was built, whatever kind it was before: dbt would keep what it has under the name."""
        if relation is not None:
            self.cache.drop(relation)  # type: ignore[no-untyped-call]
        return str(super().cache_added(relation))

    # Schemas and relations, of the metadata alone.

    @available.parse_list
    def list_schemas(self, database: str) -> list[str]:
        with self._translated():
            return metadata.schema_names(self._lake(database))

    @available.parse(lambda *a, **k: False)
    def check_schema_exists(self, database: str, schema: str) -> bool:
        with self._translated():
            return self._lake(database).snapshot().find_schema(schema) is not None

    def create_schema(self, relation: BaseRelation) -> None:
        with self._session() as session:
            run_create_schema(session, CreateSchema(_schema_name(relation), if_not_exists=True))

    def drop_schema(self, relation: BaseRelation) -> None:
        with self._session() as session:
            run_drop(session, Drop("SCHEMA", _schema_name(relation), if_exists=True, cascade=True))
        self.cache.drop_schema(relation.database, relation.schema)

    @available.parse_none
    def drop_relation(self, relation: BaseRelation) -> None:
        self.cache_dropped(relation)
        kind = "VIEW" if relation.type == RelationType.View else "TABLE"
        with self._session() as session:
            run_drop(session, Drop(kind, _name(relation), if_exists=True))

    @available.parse_none
    def truncate_relation(self, relation: BaseRelation) -> None:
        with self._session() as session:
            run_truncate(session, Truncate(_name(relation)))

    @available.parse_none
    def rename_relation(self, from_relation: BaseRelation, to_relation: BaseRelation) -> None:
        self.cache_renamed(from_relation, to_relation)
        with self._session() as session:
            run_alter(session, AlterTable(_name(from_relation), RenameTo(_name(to_relation))))

    @available.parse_list
    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        with self._translated():
            there = metadata.relations_in(self._lake(schema_relation.database), str(schema_relation.schema))
        return [
            self.Relation.create(
                database=schema_relation.database,
                schema=found.schema,
                identifier=found.name,
                type=RelationType.View if found.is_view else RelationType.Table,
            )
            for found in there
        ]

    @available.parse_list
    def get_columns_in_relation(self, relation: BaseRelation) -> list[DuckLakeColumn]:
        with self._session() as session:
            files = getattr(relation, "files", None)
            found = metadata.columns_of_query(session, f"SELECT * FROM {files}") if files else metadata.columns_of(
                session, _name(relation).parts
            )  # fmt: skip
        return [self.Column(column.name, column.type) for column in found]

    # Docs and freshness, of the metadata alone.

    def get_catalog(
        self, relation_configs: Iterable[Any], used_schemas: frozenset[tuple[str, str]]
    ) -> tuple[agate.Table, list[Exception]]:
        wanted = [(info.database, schema, None) for info, schemas in self._get_catalog_schemas(relation_configs).items()
                  for schema in schemas if schema is not None]  # fmt: skip
        return self._catalog(wanted), []

    def get_catalog_by_relations(
        self, used_schemas: frozenset[tuple[str, str]], relations: set[BaseRelation]
    ) -> tuple[agate.Table, list[Exception]]:
        return self._catalog([(one.database, str(one.schema), one.identifier) for one in relations]), []

    def _catalog(self, wanted: Sequence[tuple[str | None, str, str | None]]) -> agate.Table:
        from dbt_common.clients.agate_helper import table_from_rows

        by_lake: dict[str, list[tuple[str, str | None]]] = {}
        for database, schema, identifier in wanted:
            by_lake.setdefault(database or self.config.credentials.database, []).append((schema, identifier))
        attached = {fold(name) for name, _ in self.config.credentials.descriptions()}
        for database in [name for name in by_lake if fold(name.strip("`")) not in attached]:
            # A source that other targets have; what reads it is not built here either.
            logger.warning(f"Lake {database} is not attached to this target: the docs say nothing of what is in it")
            del by_lake[database]
        with self._translated():
            rows = [
                row
                for database, names in by_lake.items()
                for row in metadata.catalog_rows(self._lake(database), database, names)
            ]
        texts = [name for name in metadata.CATALOG_COLUMNS if not name.startswith("stats:") and name != "column_index"]
        return table_from_rows(rows, metadata.CATALOG_COLUMNS, text_only_columns=texts)

    def calculate_freshness_from_metadata_batch(
        self, sources: list[BaseRelation], macro_resolver: Any = None
    ) -> tuple[list[AdapterResponse | None], dict[BaseRelation, Any]]:
        now = datetime.now(UTC)
        found = {}
        for source in sources:
            with self._translated():
                lake = self._lake(source.database)
                changed = metadata.last_data_change(lake, str(source.schema), str(source.identifier))
            found[source] = self._create_freshness_response(changed, now)
        return [], found

    # What macros ask for.

    @available.parse(lambda *a, **k: "")
    def table_clauses(self, model: Mapping[str, Any]) -> str:
        """The clauses of CREATE TABLE that a model's settings come to."""
        if ((model.get("config") or {}).get("contract") or {}).get("enforced"):
            # Their text is not used: they warn of each constraint that nobody enforces.
            self.render_raw_columns_constraints(raw_columns=dict(model.get("columns") or {}))
            self.render_raw_model_constraints(raw_constraints=list(model.get("constraints") or []))
            warn_of_lengths(model)
        check_incremental(model)
        return ModelConfig.of(model).table_clauses()

    @available.parse_none
    def follow_docs(self, relation: BaseRelation, model: Mapping[str, Any]) -> None:
        """Bring a table's comments to what the model's descriptions are, where `persist_docs` keeps them."""
        settings = ModelConfig.of(model)
        comments = {fold(column.name): column.comment for column in settings.columns if column.comment}
        if settings.comment or comments:
            with self._session() as session:
                follow_comments(session, _name(relation), settings.comment, comments)

    @available.parse(lambda *a, **k: "")
    def view_clauses(self, model: Mapping[str, Any]) -> str:
        return ModelConfig.of(model).view_clauses()

    @available.parse(lambda *a, **k: "")
    def prepare_spark(self) -> str:
        """Make what lets Spark start sooner on this machine; where it lies."""
        with self._translated():
            return str(make_class_archive())

    @available.parse_none
    def load_seed(self, relation: BaseRelation, rows: agate.Table, model: Mapping[str, Any]) -> AdapterResponse:
        with self._session() as session:
            return self._response(load_seed(session, str(relation), rows, model))

    def submit_python_job(self, parsed_model: dict[str, Any], compiled_code: str) -> AdapterResponse:
        relation = self.Relation.create(
            database=parsed_model["database"], schema=parsed_model["schema"], identifier=parsed_model["alias"]
        )
        with self._session() as session:
            return self._response(run_python_model(session, str(relation), parsed_model, compiled_code))

    @available.parse_none
    def python_rows(self, relation: BaseRelation, model: Mapping[str, Any], compiled_code: str) -> None:
        """Run a Python model and show what it returns as a temporary view."""
        with self._session() as session:
            show_python_model(session, str(relation), relation.identifier or "", model, compiled_code)

    @available
    def spark_type_of(self, text: str) -> str:
        return spark_type_of(text)

    @available
    def fixture_value(self, value: Any, type_text: str) -> str:
        return fixture_value(value, type_text)

    @available.parse(lambda adapter, given, declared: given)
    def named_alike(self, given: Sequence[DuckLakeColumn], declared: Sequence[DuckLakeColumn]) -> list[DuckLakeColumn]:
        return named_alike(given, declared)

    @available.parse_none
    def filter_python_inputs(self, relations: Sequence[Any]) -> None:
        """Have the Python model of this node read of these relations what their filters by time leave."""
        with self._session() as session:
            session.inputs = {
                one.render(): one.render_event_time_filtered() for one in relations if isinstance(one, BaseRelation)
            }

    @available.parse(lambda adapter, model, sql: sql)
    def checked_batch(self, model: Mapping[str, Any], sql: str) -> str:
        return checked_batch(model, sql)

    @available.parse_none
    def keep_rows(self, relation: BaseRelation, sql: str) -> None:
        """A temporary view of rows that are computed once, however often they are read before the node ends."""
        with self._session() as session:
            run_create_view(session, CreateView(_name(relation), sql, replace=True, temporary=True, pinned=True))

    @available.parse(lambda *a, **k: "")
    def time_of_node(self) -> str:
        """One time for all that a node asks it of, as Spark SQL."""
        with self._session() as session:
            return literal(session.time_of_node())

    @available.parse(lambda *a, **k: [])
    def shared_columns(self, batch: BaseRelation, target: BaseRelation, mode: str) -> list[str]:
        """The columns that both have, as the target spells them and in its order. A column that the batch lacks is an
        error with `on_schema_change: ignore`, as dbt documents it."""
        given = {fold(column.name) for column in self.get_columns_in_relation(batch)}
        there = [column.name for column in self.get_columns_in_relation(target)]
        missing = [name for name in there if fold(name) not in given]
        if missing and mode == "ignore":
            raise DbtRuntimeError(
                f"{target} has the column {missing[0]}, which the model does not give any more. Give it, set "
                "`on_schema_change` to append_new_columns or sync_all_columns, or rebuild it with --full-refresh."
            )
        return [name for name in there if fold(name) in given]

    @available.parse(lambda *a, **k: (False, []))
    def columns_to_check(self, target: BaseRelation, given: Sequence[str]) -> tuple[bool, list[str]]:
        """Whether a query has columns that a snapshot's table lacks, and those that both have."""
        there = {fold(column.name): column.quoted for column in self.get_columns_in_relation(target)}
        shared = [there[fold(name)] for name in given if fold(name) in there]
        return len(shared) < len(given), shared

    @available.parse(lambda *a, **k: [])
    def snapshot_columns(self, staging: BaseRelation, unique_key: str | Sequence[str]) -> list[DuckLakeColumn]:
        """The columns of dbt's staging query that belong into the snapshot's table."""
        count = 0 if isinstance(unique_key, str) else len(unique_key)
        own = {"dbt_change_type", "dbt_unique_key", *(f"dbt_unique_key_{place}" for place in range(1, count + 1))}
        return [column for column in self.get_columns_in_relation(staging) if fold(column.name) not in own]

    @available.parse_none
    def stage_snapshot_columns(self, source: BaseRelation, target: BaseRelation, given: Sequence[str] = ()) -> None:
        """Have a snapshot's table take the columns of a query, or those given of them, with its next statement."""
        columns = self.get_columns_in_relation(source)
        wanted = {fold(name) for name in given} or {fold(column.name) for column in columns}
        with self._session() as session:
            table = self._staged_table(session, target)
            changes = snapshot_changes(table, [column for column in columns if fold(column.name) in wanted])
            stage(session, session.whole(_name(target)), changes)

    def _staged_table(self, session: LakeSession, target: BaseRelation) -> Table:
        name = session.whole(_name(target))
        snapshot = session.lake(name.lake).snapshot()
        return table_as_staged(session, name, snapshot, snapshot.table(name.schema, name.name))

    @available.parse(lambda *a, **k: {})
    def compared_columns(self, batch: BaseRelation, target: BaseRelation) -> dict[str, Any]:
        """What dbt's `check_for_schema_changes` answers; names are compared as a lake does, without case."""
        return compared(self.get_columns_in_relation(batch), self.get_columns_in_relation(target))

    @available.parse_none
    def stage_schema_changes(self) -> None:
        """Have the changes of `on_schema_change` wait for the statement that writes the batch."""
        with self._session() as session:
            session.stages_changes = True

    @available.parse_none
    def change_schema(self, mode: str, target: BaseRelation, found: Mapping[str, Any]) -> None:
        """Do what `on_schema_change` asks for of what dbt found, in one commit; fields within structs too."""
        with self._session() as session:
            name = session.whole(_name(target))
            stage(session, name, schema_changes(mode, self._staged_table(session, target), found))
            if not session.stages_changes:
                commit_staged(session, name)

    @available.parse_none
    def settle_schema(self, target: BaseRelation) -> None:
        """Commit what is staged for a table and no statement has brought with it."""
        with self._session() as session:
            commit_staged(session, session.whole(_name(target)))

    @available.parse(lambda *a, **k: "")
    def incremental_statement(
        self, strategy: str, model: Mapping[str, Any], target: BaseRelation, batch: BaseRelation, columns: Sequence[str]
    ) -> str:
        return statement_of(strategy, model, target, batch, columns)

    def valid_incremental_strategies(self) -> list[str]:
        return list(STRATEGIES)

    def debug_query(self) -> None:
        """What `dbt debug` tries, the lake before Spark: each lake opens, its data path takes files, Java is there,
        Spark answers."""
        with self._session() as session:
            for name, lake in session.lakes.items():
                lake.snapshot()
                if lake.is_one_of_many:
                    logger.info(f"Lake {name} is kept apart from others by {lake.isolation()}")
                if not lake.is_read_only:
                    check_data_path(name, session.storage(lake))
            if session.spark.settings.remote is None:
                check_java()
        self.execute("select 1 as id", fetch=True)

    # Types of a seed's columns.

    @classmethod
    def convert_text_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "string"

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        import agate

        return "double" if agate_table.aggregate(agate.MaxPrecision(col_idx)) else "bigint"

    @classmethod
    def convert_integer_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "bigint"

    @classmethod
    def convert_boolean_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "boolean"

    @classmethod
    def convert_datetime_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "timestamp"

    @classmethod
    def convert_date_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "date"

    @classmethod
    def convert_time_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "string"

    def _response(self, outcome: Outcome) -> AdapterResponse:
        return self.connections.response_of(outcome)


def _name(relation: BaseRelation) -> Name:
    """The parts of a relation that it is rendered with: a temporary view has only its own name."""
    policy = relation.include_policy
    parts = (
        relation.database if policy.database else None,
        relation.schema if policy.schema else None,
        relation.identifier,
    )
    return Name(tuple(part for part in parts if part))


def _schema_name(relation: BaseRelation) -> Name:
    return Name(tuple(part for part in (relation.database, relation.schema) if part))
