{{ config(event_time='ordered_at') }}
-- depends_on: {{ ref('raw_orders') }}
select
    id as order_id,
    customer_id,
    ordered_at,
    status
from {{ source('shop', 'raw_orders') }}
