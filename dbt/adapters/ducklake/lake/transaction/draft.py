"""A snapshot with changes on it that are not committed: which schemas, tables and views there are by name."""

from __future__ import annotations

from dbt.adapters.ducklake.lake.definitions import Schema, Table, TableName, View
from dbt.adapters.ducklake.lake.errors import SchemaNotFound, TableNotFound
from dbt.adapters.ducklake.lake.names import SchemaId, fold
from dbt.adapters.ducklake.lake.snapshot.snapshot import Snapshot


class Draft:
    def __init__(self, base: Snapshot) -> None:
        self.base = base
        # What was made of names: None for what was dropped or renamed away.
        self._schemas: dict[tuple[str, ...], Schema | None] = {}
        self._objects: dict[tuple[SchemaId, str], Table | View | None] = {}

    def schema(self, name: str) -> Schema:
        found = self.find_schema(name)
        if found is None:
            raise SchemaNotFound(name, self.base.id, {schema.name for schema in self.all_schemas()})
        return found

    def find_schema(self, name: str) -> Schema | None:
        found = (self._schema_at(path) for path in self.base.paths_of(name))
        return next((schema for schema in found if schema is not None), None)

    def _schema_at(self, path: tuple[str, ...]) -> Schema | None:
        key = tuple(map(fold, path))
        return self._schemas[key] if key in self._schemas else self.base.schema_at(path)

    def all_schemas(self) -> list[Schema]:
        own = [schema for schema in self._schemas.values() if schema is not None]
        return [*own, *(one for one in self.base.schemas() if tuple(map(fold, one.parts)) not in self._schemas)]

    def find(self, schema: str, name: str) -> Table | View | None:
        found = self.find_schema(schema)
        if found is None:
            return None
        if (found.id, fold(name)) in self._objects:
            return self._objects[found.id, fold(name)]
        return self.base.find_in(found, name) if found.id >= 0 else None

    def table(self, schema: str, name: str) -> Table:
        found = self.find(schema, name)
        if not isinstance(found, Table):
            raise TableNotFound(schema, name, self.base.id, self._names_in(schema, Table))
        return found

    def view(self, schema: str, name: str) -> View:
        found = self.find(schema, name)
        if not isinstance(found, View):
            raise TableNotFound(schema, name, self.base.id, self._names_in(schema, View), kind="View")
        return found

    def members(self, schema: Schema) -> list[Table | TableName | View]:
        own = [found for (id, _), found in self._objects.items() if id == schema.id and found is not None]
        if schema.id < 0:
            return list(own)
        changed = {name for id, name in self._objects if id == schema.id}
        earlier: list[TableName | View] = [*self.base.tables_in(schema), *self.base.views_in(schema)]
        return [*own, *(member for member in earlier if fold(member.name) not in changed)]

    def below(self, schema: Schema) -> list[Schema]:
        """The schemas that lie within one, at any depth, the deepest first."""
        depth, key = len(schema.parts), tuple(map(fold, schema.parts))
        found = [one for one in self.all_schemas() if tuple(map(fold, one.parts[:depth])) == key and one != schema]
        return sorted(found, key=lambda one: -len(one.parts))

    def _names_in(self, schema: str, kind: type[Table] | type[View]) -> list[str]:
        named = (Table, TableName) if kind is Table else (View,)
        return [member.name for member in self.members(self.schema(schema)) if isinstance(member, named)]
