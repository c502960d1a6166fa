"""Our errors as dbt's: which of its classes each becomes."""

from __future__ import annotations

from dbt.adapters.exceptions import FailedToConnectError
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.ducklake.lake import CannotOpen, LakeError
from dbt.adapters.ducklake.spark.errors import JavaMissing, JobCancelled, SparkRoomError, SparkUnavailable
from dbt.adapters.ducklake.statements.errors import StatementError

OURS = (LakeError, SparkRoomError, StatementError)


def as_dbt(error: BaseException) -> DbtRuntimeError:
    """The error as dbt shows it; its own text, and no other."""
    text = str(error)
    if isinstance(error, (CannotOpen, JavaMissing, SparkUnavailable)):
        return FailedToConnectError(text)
    if isinstance(error, JobCancelled):
        return DbtRuntimeError(text)
    return DbtDatabaseError(text)
