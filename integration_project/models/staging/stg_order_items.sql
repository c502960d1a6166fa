-- depends_on: {{ ref('raw_order_items') }} {{ ref('raw_products') }}
select
    items.order_id,
    items.line,
    items.sku,
    products.kind,
    items.quantity,
    cast(items.quantity * products.price as decimal(12, 2)) as amount
from {{ source('shop', 'raw_order_items') }} as items
join {{ source('shop', 'raw_products') }} as products using (sku)
