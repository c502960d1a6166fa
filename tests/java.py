"""Java for tests: they are over before the JVM's second compiler has paid for itself."""

from __future__ import annotations

from dbt.adapters.ducklake.spark.java import OPTIONS

# Code for which the cache has no room is interpreted, and the first compiler alone would reserve little.
QUICK = {OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"}
