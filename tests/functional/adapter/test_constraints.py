"""Contracts and constraints. NOT NULL is enforced; the others are read, and dbt says that they are not."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.constraints import fixtures
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintQuotedColumn,
    BaseConstraintsRollback,
    BaseConstraintsRuntimeDdlEnforcement,
    BaseIncrementalConstraintsColumnsEqual,
    BaseIncrementalConstraintsRollback,
    BaseIncrementalConstraintsRuntimeDdlEnforcement,
    BaseIncrementalContractSqlHeader,
    BaseIncrementalForeignKeyConstraint,
    BaseModelConstraintsRuntimeEnforcement,
    BaseTableConstraintsColumnsEqual,
    BaseTableContractSqlHeader,
    BaseViewConstraintsColumnsEqual,
)

_DDL = """
create or replace table <model_identifier> (`id` {id_type} not null, `color` {text}, `date_day` {text}) as
select id, color, date_day from (
    -- depends_on: <foreign_key_model_identifier>
    select 'blue' as color, 1 as id, '2019-01-01' as date_day
) as model_subq
"""


def with_spark_types(yml: str) -> str:
    return yml.replace("data_type: text", "data_type: string").replace("data_type: integer", "data_type: int")


class Types:
    @pytest.fixture
    def string_type(self) -> str:
        return "string"

    @pytest.fixture
    def int_type(self) -> str:
        return "int"

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [
            ["1", "int", "int"],
            ["2L", "bigint", "bigint"],
            ["'1'", "string", "string"],
            ["true", "boolean", "boolean"],
            ["cast('2013-11-03 00:00:00-07' as timestamp)", "timestamp", "timestamp"],
            ["cast('2013-11-03 00:00:00' as timestamp_ntz)", "timestamp_ntz", "timestamp_ntz"],
            ["date'2019-01-01'", "date", "date"],
            ["array('a', 'b', 'c')", "array<string>", "array<string>"],
            ["map('a', 1)", "map<string,int>", "map<string,int>"],
            ["named_struct('a', 1)", "struct<a:int>", "struct<a:int>"],
            ["cast(6.45 as decimal(10, 2))", "decimal(10,2)", "decimal(10,2)"],
            ["1.5D", "double", "double"],
        ]


class TestTableConstraintsColumnsEqual(Types, BaseTableConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model_wrong_order.sql": fixtures.my_model_wrong_order_sql,
            "my_model_wrong_name.sql": fixtures.my_model_wrong_name_sql,
            "constraints_schema.yml": with_spark_types(fixtures.model_schema_yml),
        }


class TestViewConstraintsColumnsEqual(Types, BaseViewConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model_wrong_order.sql": fixtures.my_model_view_wrong_order_sql,
            "my_model_wrong_name.sql": fixtures.my_model_view_wrong_name_sql,
            "constraints_schema.yml": with_spark_types(fixtures.model_schema_yml),
        }


class TestConstraintsRuntimeDdlEnforcement(BaseConstraintsRuntimeDdlEnforcement):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": fixtures.my_model_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": with_spark_types(fixtures.model_fk_constraint_schema_yml),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return _DDL.format(id_type="int", text="string")


class TestConstraintsRollback(BaseConstraintsRollback):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": fixtures.my_model_sql,
            "constraints_schema.yml": with_spark_types(fixtures.model_schema_yml),
        }

    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["id is NULL in 1", "NOT NULL", "Nothing was written"]


class TestModelConstraintsRuntimeEnforcement(BaseModelConstraintsRuntimeEnforcement):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": fixtures.my_model_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": with_spark_types(fixtures.constrained_model_schema_yml),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return _DDL.format(id_type="int", text="string")


class TestConstraintQuotedColumn(BaseConstraintQuotedColumn):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": fixtures.my_model_with_quoted_column_name_sql.replace('"', "`"),
            "constraints_schema.yml": with_spark_types(fixtures.model_quoted_column_schema_yml),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return """
        create or replace table <model_identifier> (`id` int not null, `from` string not null, `date_day` string) as
        select id, `from`, date_day from (
            select 'blue' as `from`, 1 as id, '2019-01-01' as date_day
        ) as model_subq
        """


def header_models(config: str) -> dict[str, str]:
    header = "{% call set_sql_header(config) %}set spark.sql.session.timeZone = Asia/Kolkata;{% endcall %}"
    return {
        "my_model_contract_sql_header.sql": f"{{{{ config({config}) }}}}\n{header}\n"
        "select current_timezone() as column_name",
        "constraints_schema.yml": fixtures.model_contract_header_schema_yml.replace("text", "string"),
    }


class TestTableContractSqlHeader(BaseTableContractSqlHeader):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return header_models("materialized='table'")


class TestIncrementalConstraintsColumnsEqual(Types, BaseIncrementalConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model_wrong_order.sql": fixtures.my_model_incremental_wrong_order_sql,
            "my_model_wrong_name.sql": fixtures.my_model_incremental_wrong_name_sql,
            "constraints_schema.yml": with_spark_types(fixtures.model_schema_yml),
        }


class TestIncrementalConstraintsRuntimeDdlEnforcement(BaseIncrementalConstraintsRuntimeDdlEnforcement):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": fixtures.my_model_incremental_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": with_spark_types(fixtures.model_fk_constraint_schema_yml),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return _DDL.format(id_type="int", text="string")


class TestIncrementalConstraintsRollback(BaseIncrementalConstraintsRollback):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": fixtures.my_incremental_model_sql,
            "constraints_schema.yml": with_spark_types(fixtures.model_schema_yml),
        }

    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["id is NULL in 1", "NOT NULL", "Nothing was written"]


class TestIncrementalContractSqlHeader(BaseIncrementalContractSqlHeader):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return header_models("materialized='incremental', on_schema_change='append_new_columns'")


class TestIncrementalForeignKeyConstraint(BaseIncrementalForeignKeyConstraint):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "schema.yml": with_spark_types(fixtures.incremental_foreign_key_schema_yml),
            "raw_numbers.sql": fixtures.incremental_foreign_key_model_raw_numbers_sql,
            "stg_numbers.sql": fixtures.incremental_foreign_key_model_stg_numbers_sql,
        }
