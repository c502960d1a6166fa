{{ config(
    materialized='incremental', incremental_strategy='microbatch', event_time='ordered_at', begin='2026-01-01',
    batch_size='year', partitioned_by='year(ordered_at)'
) }}
-- One batch for each year; a batch that runs again replaces its year.
select order_id, customer_id, ordered_at from {{ ref('stg_orders') }}
