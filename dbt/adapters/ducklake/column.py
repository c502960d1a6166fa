"""A column with its type in Spark's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt.adapters.base.column import Column

from dbt.adapters.ducklake.spark.schema import quoted

_INTEGERS = frozenset({"tinyint", "smallint", "int", "integer", "bigint", "byte", "short", "long"})
_FLOATS = frozenset({"float", "real", "double"})


@dataclass
class DuckLakeColumn(Column):
    TYPE_LABELS: ClassVar[dict[str, str]] = {
        "STRING": "string", "TEXT": "string", "VARCHAR": "string", "INTEGER": "int", "LONG": "bigint",
        "TIMESTAMP": "timestamp",
    }  # fmt: skip

    @property
    def quoted(self) -> str:
        return quoted(self.column)

    @property
    def data_type(self) -> str:
        """The whole type, decimals with their precision in it, nested types with what they hold."""
        return self.dtype

    @classmethod
    def string_type(cls, size: int) -> str:
        return "string"

    @classmethod
    def numeric_type(cls, dtype: str, precision: object, scale: object) -> str:
        return dtype if precision is None or scale is None else f"decimal({precision},{scale})"

    def is_string(self) -> bool:
        return self.dtype.lower() in ("string", "text") or self.dtype.lower().startswith(("varchar", "char"))

    def is_integer(self) -> bool:
        return self.dtype.lower() in _INTEGERS

    def is_float(self) -> bool:
        return self.dtype.lower() in _FLOATS

    def is_numeric(self) -> bool:
        return self.dtype.lower().startswith(("decimal", "numeric", "dec"))

    def string_size(self) -> int:
        return 256

    def can_expand_to(self, other_column: Column) -> bool:
        """Strings have no size here, so that none ever has to grow."""
        return False
