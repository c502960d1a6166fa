-- depends_on: {{ ref('raw_customers') }}
select
    id as customer_id,
    name,
    city,
    signed_up_at
from {{ source('shop', 'raw_customers') }}
