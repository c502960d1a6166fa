{{ config(materialized='incremental', unique_key='order_id', merge_exclude_columns=['first_seen_at']) }}
-- Merged: one row for each order, as it is now.
select order_id, status, ordered_at as changed_at, ordered_at as first_seen_at
from {{ ref('stg_orders') }}
{% if is_incremental() %}
where ordered_at >= (select max(changed_at) from {{ this }})
{% endif %}
