"""A part of a Spark query in DuckDB's SQL, with the type that Spark gives it; and what cannot be translated."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dbt.adapters.ducklake.lake import Column


@dataclass(frozen=True)
class Typed:
    """`sql` stands where one operand can. `text` is the value of a literal of text, `number` that of a whole number.
    `call` is an aggregate or a function of windows without the cast around it: OVER and FILTER stand behind that."""

    sql: str
    type: Column
    text: str | None = None
    number: int | None = None
    # Whether the number is a literal to Spark: a cast of one is not.
    is_literal: bool = False
    call: str | None = None

    @property
    def kind(self) -> str:
        return self.type.type.name


class Untranslatable(Exception):
    """A part of a query for which DuckDB may not give Spark's answer."""

    def __init__(self, node: exp.Expr | None, reason: str) -> None:
        self.node, self.reason = node, reason
        super().__init__(reason)


def text_literal(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def error(text: str) -> str:
    """An expression of any type that fails with a text if it is evaluated."""
    return f"error({text_literal(text)})"
