select * from {{ ref('orders') }} where ordered_at < timestamp'2026-02-01'
