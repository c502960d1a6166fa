with by_day as (
    select
        cast(orders.ordered_at as date) as day,
        items.kind,
        sum(items.amount) as amount
    from {{ ref('paid_orders') }} as orders
    join {{ ref('stg_order_items') }} as items using (order_id)
    group by all
)
select
    day,
    kind,
    amount,
    sum(amount) over (partition by kind order by day rows between 6 preceding and current row) as amount_of_week
from by_day
