{{ config(partitioned_by=['month(ordered_at)'], sorted_by='ordered_at', table_options={'parquet_compression': 'zstd'}) }}
select
    orders.order_id,
    orders.customer_id,
    orders.ordered_at,
    sum(items.amount) as amount,
    count(*) as item_count,
    collect_list(named_struct('sku', items.sku, 'quantity', items.quantity)) as items
from {{ ref('paid_orders') }} as orders
join {{ ref('stg_order_items') }} as items using (order_id)
group by all
