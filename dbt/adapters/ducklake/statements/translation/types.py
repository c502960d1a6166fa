"""Spark's types as columns of a lake, and its rules for what two of them have in common."""

from __future__ import annotations

from dbt.adapters.ducklake.lake import Column, ColumnType, decimal, quoted

WHOLE = ("int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
MOMENTS = ("date", "timestamp", "timestamptz")
_DIGITS = {"int8": 3, "int16": 5, "int32": 10, "int64": 20}
_MOST_DIGITS = 38
_DUCKDB = {
    "boolean": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT",
    "float32": "FLOAT", "float64": "DOUBLE", "varchar": "VARCHAR", "blob": "BLOB", "date": "DATE",
    "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMPTZ",
}  # fmt: skip


def plain(name: str) -> Column:
    return Column("", ColumnType(name))


BOOLEAN, INT, BIGINT, DOUBLE, STRING = map(plain, ("boolean", "int32", "int64", "float64", "varchar"))
DATE, TIMESTAMP, NAIVE, BINARY, VOID = map(plain, ("date", "timestamptz", "timestamp", "blob", "unknown"))


def decimal_of(precision: int, scale: int) -> Column | None:
    """The type of decimals with so many digits; None if Spark would round to fit them into 38."""
    return Column("", decimal(precision, scale)) if precision <= _MOST_DIGITS else None


def list_of(element: Column) -> Column:
    return Column("", ColumnType("list"), (_named("element", element),))


def struct_of(fields: list[tuple[str, Column]]) -> Column:
    return Column("", ColumnType("struct"), tuple(_named(name, field) for name, field in fields))


def map_of(key: Column, held: Column) -> Column:
    return Column("", ColumnType("map"), (_named("key", key), _named("value", held)))


def _named(name: str, column: Column) -> Column:
    return Column(name, column.type, column.children)


def is_whole(column: Column) -> bool:
    return column.type.name in WHOLE


def holds(column: Column, number: int) -> bool:
    """Whether a type of whole numbers has this one."""
    most: int = 2 ** (int(column.type.name.removeprefix("int")) - 1)
    return -most <= number < most


def is_decimal(column: Column) -> bool:
    return column.type.name == "decimal"


def is_exact(column: Column) -> bool:
    return is_whole(column) or is_decimal(column)


def is_number(column: Column) -> bool:
    return is_exact(column) or column.type.name in FLOATS


def digits(column: Column) -> tuple[int, int]:
    """Precision and scale of a whole number or a decimal, as Spark takes whole numbers for decimals."""
    return (column.type.precision, column.type.scale) if is_decimal(column) else (_DIGITS[column.type.name], 0)


def same(one: Column, other: Column) -> bool:
    """Whether two types are equal, fields by their names and places."""
    pairs = zip(one.children, other.children, strict=False)
    is_alike = one.type == other.type and len(one.children) == len(other.children)
    names = one.type.name != "struct" or [c.name for c in one.children] == [c.name for c in other.children]
    return is_alike and names and all(same(a, b) for a, b in pairs)


def common(one: Column, other: Column) -> Column | None:
    """The type that Spark brings both to, as in CASE or a comparison; None if that is more than a widening."""
    if same(one, other) or other.type.name == "unknown":
        return one
    if one.type.name == "unknown":
        return other
    if is_number(one) and is_number(other):
        return _common_number(one, other)
    moments = {one.type.name, other.type.name}
    if moments <= set(MOMENTS):
        return TIMESTAMP if "timestamptz" in moments else NAIVE
    return None


def _common_number(one: Column, other: Column) -> Column | None:
    if is_whole(one) and is_whole(other):
        return max(one, other, key=lambda column: WHOLE.index(column.type.name))
    if is_exact(one) and is_exact(other):
        (precision, scale), (more, further) = digits(one), digits(other)
        behind = max(scale, further)
        return decimal_of(max(precision - scale, more - further) + behind, behind)
    return plain("float32") if {one.type.name, other.type.name} == {"float32"} else DOUBLE


def duckdb_type(column: Column) -> str:
    """The type in DuckDB's words."""
    name = column.type.name
    if name == "decimal":
        return f"DECIMAL({column.type.precision},{column.type.scale})"
    if name == "list":
        return f"{duckdb_type(column.children[0])}[]"
    if name == "map":
        return f"MAP({duckdb_type(column.children[0])}, {duckdb_type(column.children[1])})"
    if name == "struct":
        fields = (f"{quoted(child.name)} {duckdb_type(child)}" for child in column.children)
        return f"STRUCT({', '.join(fields)})"
    return _DUCKDB[name]
