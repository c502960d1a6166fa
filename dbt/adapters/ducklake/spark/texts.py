"""Texts that DuckDB can read: UTF-8, and in columns of JSON a JSON document, the whole of it."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F
from pyspark.sql import types as T

# Spark's reader of JSON takes more than JSON unless it is told not to.
_STRICT = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"


def is_json(text: Expression) -> Expression:
    """Whether a text is one JSON document and nothing else; NULL counts as none.

    Spark's functions stop behind the first value of a text. So the text stands within a larger document: as the value
    of a field, and as the only element of a list. What comes behind it must still be there, and as no text holds its
    own hash, it can only be what was put there. A text that closes the one bracket early does not fit the other.
    """
    mark = F.md5(text)
    as_field = F.concat(F.lit('{"v":'), text, F.lit(',"e":"'), mark, F.lit('"}'))
    in_list = F.concat(F.lit('{"v":['), text, F.lit('],"e":"'), mark, F.lit('"}'))
    field = F.from_json(as_field, "v string, e string", _STRICT)
    listed = F.from_json(in_list, "v array<string>, e string", _STRICT)
    is_whole = (field["e"] == mark) & (listed["e"] == mark) & (F.size(listed["v"]) == 1)
    # Half of a surrogate pair: a backslash that is escaped itself begins none.
    escapes = F.replace(text, F.lit("\\\\"), F.lit("__"))
    is_cut = F.regexp_replace(escapes, _HIGH + _LOW, "").rlike(r"\\u[dD][89a-fA-F]")
    return F.coalesce(is_whole & ~is_cut, F.lit(False))


def is_utf8(value: Expression, kind: T.DataType) -> Expression | None:
    """Whether all text in a value is UTF-8; None if a value of its type holds none."""
    if isinstance(kind, T.StringType):
        return F.coalesce(F.is_valid_utf8(value), F.lit(True))
    if isinstance(kind, T.StructType):
        fields = [is_utf8(value.getField(field.name), field.dataType) for field in kind]
        checks = [check for check in fields if check is not None]
        return reduce(Expression.__and__, checks) if checks else None
    if isinstance(kind, T.ArrayType):
        return _is_utf8_in_all(value, kind.elementType)
    if isinstance(kind, T.MapType):
        parts = _is_utf8_in_all(F.map_keys(value), kind.keyType), _is_utf8_in_all(F.map_values(value), kind.valueType)
        checks = [check for check in parts if check is not None]
        return reduce(Expression.__and__, checks) if checks else None
    return None


def _is_utf8_in_all(values: Expression, kind: T.DataType) -> Expression | None:
    if is_utf8(F.lit(None).cast(kind), kind) is None:
        return None

    def is_right(value: Expression) -> Expression:
        found = is_utf8(value, kind)
        assert found is not None
        return found

    return F.coalesce(F.forall(values, is_right), F.lit(True))
