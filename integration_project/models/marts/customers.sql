select
    customers.customer_id,
    customers.name,
    customers.city,
    count(orders.order_id) as order_count,
    coalesce(sum(orders.amount), 0) as amount,
    max(orders.ordered_at) as last_ordered_at
from {{ ref('stg_customers') }} as customers
left join {{ ref('orders') }} as orders using (customer_id)
group by all
