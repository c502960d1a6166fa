{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='day', partitioned_by='month(day)') }}
-- The days that come again are replaced, with all their rows.
select cast(orders.ordered_at as date) as day, items.kind, sum(items.amount) as amount
from {{ ref('paid_orders') }} as orders
join {{ ref('stg_order_items') }} as items using (order_id)
{% if is_incremental() %}
where orders.ordered_at >= (select max(day) from {{ this }})
{% endif %}
group by all
