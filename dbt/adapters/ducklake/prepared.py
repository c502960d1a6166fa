"""What is made once on a machine so that Spark starts sooner there: `dbt run-operation ducklake_prepare_spark`.

A small lake is built in a process of its own, whose JVM writes the classes that it loaded into an archive as it ends.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from dbt.adapters.ducklake.lake import LakeDescription, connect
from dbt.adapters.ducklake.spark.errors import SparkUnavailable
from dbt.adapters.ducklake.spark.java import OPTIONS, class_archive, options_making
from dbt.adapters.ducklake.spark.session import SparkHandle, SparkSettings, first_line
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession

_BUILD = "import sys; from dbt.adapters.ducklake.prepared import build_small_lake; build_small_lake(*sys.argv[1:])"
# A little of what models do.
_STATEMENTS = (
    "create table a partitioned by (day(at)) as select id, id % 7 as k, concat('n', id) as name, id / 3 as x, "
    "timestamp'2026-01-01 00:00:00' + make_interval(0, 0, 0, id) as at, array(id) as l from range(100)",
    "create view v as select k, count(*) as n, sum(x) as x, max(name) as name from a group by k",
    "create table b as select a.*, v.n, row_number() over (partition by a.k order by id) as r from a join v using (k)",
    "insert into b select * from b where id < 10",
    "update b set name = upper(name) where id = 3",
    "delete from b where id in (select id from a where k = 2)",
    "merge into b using (select id, 'new' as name from a where id < 50) s on b.id = s.id and b.r = 1 "
    "when matched then update set name = s.name when not matched then insert (id, name) values (s.id, s.name)",
)


def make_class_archive() -> Path:
    """Write the archive for the Spark and the Java of this environment, and say where it is. SparkUnavailable."""
    archive = class_archive()
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        made = Path(folder) / archive.name
        # The JVM outlives the process that started it, and holds these pipes until its archive is whole.
        command = [sys.executable, "-c", _BUILD, folder, str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own command
        if done.returncode or not made.exists():
            found = first_line(RuntimeError(done.stderr.strip().rsplit("\n", 1)[-1] or "its Java wrote no archive"))
            raise SparkUnavailable("local[2]", found)
        made.replace(archive)
    return archive


def build_small_lake(folder: str, archive: str) -> None:
    spark = SparkHandle(SparkSettings(master="local[2]", config={OPTIONS: options_making(archive)}))
    with connect(LakeDescription(f"duckdb:{folder}/small.ducklake")) as lake:
        session = LakeSession({"lake": lake}, "lake", "main", spark)
        for statement in _STATEMENTS:
            run(session, statement)
