"""Python models."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.python_model import test_spark as spark_models
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests,
    BasePythonIncrementalTests,
    BasePythonMetaGetTests,
    BasePythonModelTests,
    BasePythonSampleTests,
)
from dbt.tests.adapter.python_model.test_spark import BasePySparkTests
from dbt.tests.util import run_dbt


class TestPythonModelTests(BasePythonModelTests):
    pass


class TestPythonIncrementalTests(BasePythonIncrementalTests):
    pass


class TestPythonMetaGetTests(BasePythonMetaGetTests):
    pass


class TestPythonEmptyTests(BasePythonEmptyTests):
    pass


class TestPythonSampleTests(BasePythonSampleTests):
    pass


# What pandas-on-Spark says of a lost index is advice.
@pytest.mark.filterwarnings("ignore:If `index_col` is not specified")
class TestPySpark(BasePySparkTests):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        # Koalas ended with Spark 3.
        return {
            "pandas_df.py": spark_models.PANDAS_MODEL,
            "pyspark_df.py": spark_models.PYSPARK_MODEL,
            "pandas_on_spark_df.py": spark_models.PANDAS_ON_SPARK_MODEL,
        }

    def test_different_dataframes(self, project: object) -> None:
        assert len(run_dbt(["run"])) == 3
