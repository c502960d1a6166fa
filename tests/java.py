"""Java for tests: they are over before the JVM's second compiler has paid for itself."""

from __future__ import annotations

from dbt.adapters.ducklake.spark.java import OPTIONS

QUICK = {OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
