"""Types and columns as a statement spells them, in Spark's SQL."""

from __future__ import annotations

from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt.adapters.ducklake.lake import Column, ColumnType, decimal
from dbt.adapters.ducklake.statements.errors import NotUnderstood, Place
from dbt.adapters.ducklake.statements.reader import Reader

_T = exp.DataType.Type
_SCALARS = {
    _T.BOOLEAN: "boolean", _T.TINYINT: "int8", _T.SMALLINT: "int16", _T.INT: "int32", _T.BIGINT: "int64",
    _T.FLOAT: "float32", _T.DOUBLE: "float64", _T.TEXT: "varchar", _T.VARCHAR: "varchar", _T.CHAR: "varchar",
    _T.BINARY: "blob", _T.VARBINARY: "blob", _T.DATE: "date", _T.TIMESTAMPTZ: "timestamptz",
    _T.TIMESTAMPLTZ: "timestamptz", _T.TIMESTAMPNTZ: "timestamp", _T.DATETIME: "timestamp", _T.TIME: "time",
    _T.UUID: "uuid", _T.JSON: "json", _T.INT128: "int128",
}  # fmt: skip
# Words of DuckDB's and PostgreSQL's that sqlglot takes for other types in Spark's SQL, or does not know there.
_WORDS = {
    ("TIMESTAMP", "WITHOUT", "TIME", "ZONE"): "timestamp_ntz",
    ("TIMESTAMP", "WITH", "TIME", "ZONE"): "timestamp_ltz",
    ("INT8",): "bigint", ("HUGEINT",): "int128",
}  # fmt: skip
_UNSIGNED = {"utinyint": "uint8", "usmallint": "uint16", "uinteger": "uint32", "ubigint": "uint64"}
_END_OF_TYPE = (",", ")", "NOT", "NULL", "COMMENT", "DEFAULT", "PRIMARY", "UNIQUE", "CHECK", "CONSTRAINT", "REFERENCES")


@dataclass(frozen=True)
class Asked:
    """A default as a statement gives it, in Spark's SQL; its value is found when the statement runs."""

    expression: str


@dataclass(frozen=True)
class DeclaredColumn:
    """A column as a statement declares it; what it leaves out is None."""

    name: str
    type: Column | None = None
    nullable: bool = True
    comment: str | None = None
    default: Asked | None = None


def read_type(text: str, place: Place) -> Column:
    """A type, as a column without a name."""
    if text.strip().lower() in _UNSIGNED:
        return Column("", ColumnType(_UNSIGNED[text.strip().lower()]))
    text = _in_sparks_words(text)
    try:
        # As part of a whole: what is read as a type alone ends where the reader does not go on, without an error.
        whole = sqlglot.parse_one(f"CAST(NULL AS {text})", dialect="spark")
        parsed = whole.args["to"] if isinstance(whole, exp.Cast) else exp.DataType.build("unknown")
    except SqlglotError as error:
        raise NotUnderstood(f"The type `{text}`", "Write a type of Spark's SQL.", place) from error
    # sqlglot drops words that it does not know behind a type.
    if len(text.split()) > 1 and text.split()[0].isalpha() and text.lower().split() != ["double", "precision"]:
        raise NotUnderstood(f"The type `{text}`", "A column has a type, NOT NULL, DEFAULT and COMMENT.", place)
    return _column("", parsed, text, place)


def _in_sparks_words(text: str) -> str:
    """The text of a type with Spark's words for those that mean something else, or nothing, to its parser."""
    reader, edits = Reader(text), list[tuple[int, int, str]]()
    while not reader.is_done:
        start = reader.at
        words = next((words for words in _WORDS if reader.accept(*words)), None)
        if words is None:
            reader.at += 1
        elif reader.word() != ":":
            edits.append((reader.tokens[start].start, reader.tokens[reader.at - 1].end + 1, _WORDS[words]))
    for first, after, word in reversed(edits):
        text = text[:first] + word + text[after:]
    return text


def read_column(reader: Reader, needs_type: bool = True) -> DeclaredColumn:
    """`name [type] [NOT NULL] [DEFAULT value] [COMMENT 'text']`, in any order after the type.

    Other constraints are read and, as in dbt's contracts, not enforced.
    """
    name, place = reader.name_part(), reader.place
    text = reader.type_text(*_END_OF_TYPE)
    if needs_type and not text:
        raise reader.unexpected("Here the column's type should stand.")
    declared = DeclaredColumn(name, read_type(text, place) if text else None)
    nullable, comment, default = True, None, None
    while not reader.is_done and reader.word() not in (",", ")"):
        if reader.accept("NOT", "NULL"):
            nullable = False
        elif reader.accept("COMMENT"):
            comment = reader.string()
        elif reader.accept("DEFAULT", "NULL"):
            default = Asked("NULL")
        elif reader.accept("DEFAULT"):
            default = read_default(reader, reader.text_until(*_END_OF_TYPE))
        elif reader.accept("NULL") or reader.accept("PRIMARY", "KEY") or reader.accept("UNIQUE"):
            pass
        elif reader.accept("CHECK"):
            reader.expect("(")
            reader.text_until(")")
            reader.expect(")")
        else:
            raise reader.unexpected("A column has a type, NOT NULL, DEFAULT and COMMENT.")
    return DeclaredColumn(name, declared.type, nullable, comment, default)


def read_default(reader: Reader, text: str) -> Asked:
    if not text.strip():
        raise reader.unexpected("Here the default's value should stand.")
    return Asked(text)


def _column(name: str, kind: exp.DataType, text: str, place: Place) -> Column:
    expressions = kind.expressions
    if kind.this is _T.STRUCT:
        fields = [field for field in expressions if isinstance(field, exp.ColumnDef)]
        children = tuple(_column(field.name, field.args["kind"], text, place) for field in fields)
        if children and len(fields) == len(expressions):
            return Column(name, ColumnType("struct"), children)
    elif kind.this in (_T.ARRAY, _T.LIST) and len(expressions) == 1:
        return Column(name, ColumnType("list"), (_column("element", expressions[0], text, place),))
    elif kind.this is _T.MAP and len(expressions) == 2:
        key, held = expressions
        return Column(name, ColumnType("map"), (_column("key", key, text, place), _column("value", held, text, place)))
    elif kind.this is _T.DECIMAL:
        numbers = [int(part.name) for part in expressions]
        precision, scale = (*numbers, 0) if len(numbers) == 1 else (numbers or (10, 0))
        return Column(name, decimal(precision, scale))
    elif kind.this in _SCALARS:
        return Column(name, ColumnType(_SCALARS[kind.this]))
    raise NotUnderstood(f"The type `{text}`", "DuckLake has no type for it, or Spark writes no such column.", place)
