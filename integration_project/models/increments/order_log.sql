{{ config(
    materialized='incremental',
    compaction={'small_files': 10},
    post_hook="{{ ducklake_compact(this) }}"
) }}
-- Appended: what was written once stays as it was. Many small increments leave many small files: see `compaction`.
select order_id, customer_id, ordered_at, status
from {{ ref('stg_orders') }}
where order_id <= {{ var('orders_until', 1000000) }}
{% if is_incremental() %}
and order_id > (select max(order_id) from {{ this }})
{% endif %}
