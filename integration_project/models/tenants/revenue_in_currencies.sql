select
    revenue.day,
    revenue.kind,
    rates.currency,
    cast(revenue.amount / rates.euros as decimal(18, 2)) as amount
from {{ ref('revenue_by_day') }} as revenue
cross join {{ source('company', 'exchange_rates') }} as rates
