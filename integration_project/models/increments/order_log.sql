{{ config(materialized='incremental') }}
-- Appended: what was written once stays as it was.
select order_id, customer_id, ordered_at, status
from {{ ref('stg_orders') }}
{% if is_incremental() %}
where ordered_at > (select max(ordered_at) from {{ this }})
{% endif %}
