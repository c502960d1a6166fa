from pyspark.sql import functions as F


def model(dbt, session):
    dbt.config(materialized="table")
    customers = dbt.ref("customers")
    segment = F.when(F.col("amount") >= 100, "gold").when(F.col("amount") >= 40, "silver").otherwise("bronze")
    return customers.select("customer_id", segment.alias("segment"))
