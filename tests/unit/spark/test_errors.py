from __future__ import annotations

import pytest

from dbt.adapters.ducklake.spark.errors import JobFailed, RowsLost, failure

MISSING = """An error occurred while calling o145.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)
Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error in a.parquet. \
SQLSTATE: KD001
\tat org.apache.spark.Some.where(Some.scala:1)
Caused by: java.io.FileNotFoundException: File file:/a.parquet does not exist
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""
PYTHON = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "model.py", line 7, in bad
    raise ValueError(x)
ValueError: bad value 1
second line
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MISSING, "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error in a.parquet. "
         "(FileNotFoundException: File file:/a.parquet does not exist)"),
        ("An error occurred while calling o288.parquet.\n: java.lang.ClassCastException: class A cannot be cast to "
         "class B\n\tat x.y(Z.java:1)\n", "ClassCastException: class A cannot be cast to class B"),
        ("An error occurred while calling o1.x.\n: java.lang.NullPointerException\n\tat x.y(Z.java:1)\n",
         "NullPointerException"),
        (PYTHON, "A Python function failed: ValueError: bad value 1 second line"),
        ("[USER_RAISED_EXCEPTION] boom SQLSTATE: P0001", "boom"),
        ("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL (line 1, position 8) ==\nselect 1/0",
         "[DIVIDE_BY_ZERO] Division by zero."),
    ],
)  # fmt: skip
def test_an_error_of_java_or_python_names_its_innermost_cause(text: str, said: str) -> None:
    assert JobFailed.from_error(RuntimeError(text)).said == said


def test_lost_rows_are_no_failed_job() -> None:
    cause = "org.apache.spark.SparkException: [CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_3_0 not found!"
    assert isinstance(failure(RuntimeError(f"An error occurred while calling o59.x.\n: {cause}")), RowsLost)
